// Keys. They do nothing while somebody writes, nor together with others, and can be turned off.
(() => {
  "use strict";
  const { switchbell } = window;
  const OFF = "switchbell keys off";
  const help = document.getElementById("help");
  if (!help) return;
  const toggle = help.querySelector("input");
  const kept = {
    get: () => { try { return localStorage.getItem(OFF) !== null; } catch { return false; } },
    set: (isOff) => { try { isOff ? localStorage.setItem(OFF, "1") : localStorage.removeItem(OFF); } catch { /* for this page only */ } },
  };
  toggle.checked = !kept.get();
  toggle.addEventListener("change", () => kept.set(!toggle.checked));

  const items = () => [...document.querySelectorAll(".rows li.row, .cards li.card")];
  const here = () => document.activeElement?.closest("li.row, li.card") ?? null;
  const press = (element) => element?.click();

  function step(by) {
    const all = items();
    if (all.length === 0 || document.querySelector("article.notification")) {
      return press(document.querySelector(by > 0 ? ".crumbs a[rel=next]" : ".crumbs a[rel=prev]"));
    }
    const at = all.indexOf(here());
    const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + by))];
    next.querySelector("a.title").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  // What is ticked, or else what has the focus, or else what the page is about.
  function mark(deed) {
    const list = document.querySelector("form[data-rows]");
    if (!list) return press(document.querySelector(`#marks button[value=${deed}]`));
    const ticked = [...list.querySelectorAll(".pick input:checked")].map((box) => box.value);
    const seqs = ticked.length > 0 ? ticked : [here()?.dataset.seq].filter(Boolean);
    if (seqs.length === 0) return switchbell.tell("Select something first: j and k move, x selects.");
    const body = new URLSearchParams([["deed", deed], ...seqs.map((seq) => ["seq", seq])]);
    return switchbell.send(list.action, body).then((done) => {
      if (done) for (const box of list.querySelectorAll("input[type=checkbox]:checked")) box.checked = false;
      return switchbell.refresh();
    });
  }

  const does = {
    j: () => step(1),
    k: () => step(-1),
    x: () => press(here()?.querySelector(".pick input")),
    e: () => mark("read"),
    a: () => mark("acknowledge"),
    u: () => press(document.querySelector("[data-back]")),
    "/": () => document.getElementById("q")?.focus(),
    "?": () => help.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    const writes = target.matches?.("textarea, select, input:not([type=checkbox])") || target.isContentEditable;
    if (writes || event.ctrlKey || event.metaKey || event.altKey || help.open || event.repeat && !"jk".includes(key)) return;
    if (!Object.hasOwn(does, key) || (!toggle.checked && key !== "?")) return;
    event.preventDefault();
    does[key]();
  });
  document.querySelector("[data-help]")?.addEventListener("click", () => help.showModal());
})();
