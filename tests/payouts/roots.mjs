// Reads lists of [address, amount], a JSON document a line; writes the root of each as OpenZeppelin's library makes it.
// A line that is a path to a tree.json is loaded and validated instead, and its root written.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { StandardMerkleTree } from "@openzeppelin/merkle-tree";

for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line);
  if (typeof given !== "string") {
    console.log(StandardMerkleTree.of(given, ["address", "uint256"]).root);
    continue;
  }
  const tree = StandardMerkleTree.load(JSON.parse(readFileSync(given, "utf8")));
  tree.validate();
  console.log(tree.root);
}
