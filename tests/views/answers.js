// What the script of a page answers: columns and questions come as JSON, and answers go as JSON.
import { readFileSync } from "node:fs";

const { ArraySource } = await import("../../nbext/notebook/views/source.js");
const { columns, total, questions } = JSON.parse(readFileSync(0, "utf8"));
const source = new ArraySource(columns, total);
const answers = [];
for (const asked of questions) {
  const { count, errors } = await source.ask(asked);
  const summaries = await Promise.all(columns.map((_, at) => source.summary(at)));
  answers.push({
    count,
    wrong: Object.keys(errors).map(Number),
    rows: await source.rows(0, total),
    summaries,
  });
}
console.log(JSON.stringify(answers));
