// All of the widget that a saved notebook can hold: the code is asked of Python by message, once for each page. Without
// a kernel nothing is drawn, and the snapshot beside it stays.
globalThis.nbextViews ??= new Map();
const loaded = globalThis.nbextViews;
const WAITS = "A cell is running; waiting for it. Without a kernel, run this cell for the live view.";

function ask(model) {
  return new Promise((resolve, reject) => {
    const heard = (message) => {
      if (message?.op !== "code") return;
      model.off("msg:custom", heard);
      const script = new Blob([`${message.script}\n//# sourceURL=nbext/views.js`], {
        type: "text/javascript",
      });
      import(URL.createObjectURL(script)).then((app) => resolve({ app, css: message.css }), reject);
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
