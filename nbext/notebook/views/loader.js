// All of the widget that a saved notebook can hold: the code is asked of Python by message, once for each page. Without
// a kernel nothing is drawn, and the snapshot beside it stays.
globalThis.nbextViews ??= new Map();
const loaded = globalThis.nbextViews;
const WAITS = "A cell is running; waiting for it. Without a kernel, run this cell for the live view.";

function link(modules) {
  const urls = new Map();
  for (const [name, text] of modules) {
    const linked = text.replace(
      /(from ")\.\/([\w.]+)(")/g,
      (_, before, file, after) => before + urls.get(file) + after,
    );
    urls.set(
      name,
      URL.createObjectURL(new Blob([`${linked}\n//# sourceURL=nbext/${name}`], { type: "text/javascript" })),
    );
  }
  return import(urls.get(modules.at(-1)[0]));
}

function ask(model) {
  return new Promise((resolve, reject) => {
    const heard = (message) => {
      if (message?.op !== "code") return;
      model.off("msg:custom", heard);
      link(message.modules).then((app) => resolve({ app, css: message.css }), reject);
    };
    model.on("msg:custom", heard);
    model.send({ op: "code" });
  });
}

export default {
  async render({ model, el }) {
    const digest = model.get("digest");
    const waiting = setTimeout(() => {
      el.textContent = WAITS;
    }, 1000);
    // Kept once it is there: a kernel that died while it was asked must not hold up the next notebook.
    if (!loaded.has(digest)) loaded.set(digest, await ask(model));
    clearTimeout(waiting);
    el.replaceChildren();
    const { app, css } = loaded.get(digest);
    return app.mount({ model, el, css });
  },
};
