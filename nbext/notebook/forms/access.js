// What widgets of the front end leave out, for every form: which field is wrong or required and by what text, said to
// screen readers; and a place for the focus when what has it is switched off or hidden, else the page's body gets it.

const FIELDS = ".nbext-field, .nbext-required";
let made = 0;

const usable = (one) => one.isConnected && !one.disabled && one.getClientRects().length > 0;

function put(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

function mark(field) {
  const input = field.querySelector("input, select, textarea");
  const below = [...field.querySelectorAll(".nbext-error, .nbext-help")].find(usable);
  if (!input) return;
  if (below && !below.id) below.id = `nbext-below-${made++}`;
  put(input, "aria-invalid", field.classList.contains("nbext-wrong") ? "true" : null);
  put(input, "aria-required", field.classList.contains("nbext-required") ? "true" : null);
  put(input, "aria-describedby", below ? below.id : null);
}

function next(form, from) {
  const near = [...(from.closest(".nbext-row")?.querySelectorAll("button") || [])];
  return [...near, ...form.querySelectorAll("input, select, textarea, button")].find(usable);
}

export default {
  render({ el }) {
    let form = null;
    let last = null;
    const seen = new MutationObserver(() => {
      form.querySelectorAll(FIELDS).forEach(mark);
      const at = document.activeElement;
      if (last && (at === last || at === document.body) && !usable(last)) next(form, last)?.focus();
    });
    const focused = ({ target }) => {
      // The pages of ours place the focus themselves.
      last = form.contains(target) && !target.closest("[data-lm-suppress-shortcuts]") ? target : null;
    };
    // The front end puts a widget into its form after it is drawn.
    const begin = requestAnimationFrame(function find() {
      form = el.closest(".nbext-form");
      if (!form) return;
      form.querySelectorAll(FIELDS).forEach(mark);
      seen.observe(form, { subtree: true, childList: true, attributes: true, attributeFilter: ["class", "disabled"] });
      document.addEventListener("focusin", focused);
    });
    return () => {
      cancelAnimationFrame(begin);
      seen.disconnect();
      document.removeEventListener("focusin", focused);
    };
  },
};
