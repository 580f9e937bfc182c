// Has the server make the page again, and changes what is shown into that, node by node: focus, selection and what was ticked
// stay. What fits a filter, and where it stands, is thus decided in one place.
(() => {
  "use strict";
  const { switchbell, Idiomorph } = window;
  const APART = 1_000;
  const morphing = {
    morphStyle: "outerHTML",
    ignoreActiveValue: true,
    callbacks: {
      beforeNodeMorphed(old, next) {
        if (old.nodeName === "INPUT" && old.type === "checkbox") next.checked = old.checked;
        return true;
      },
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.nodeName === "DETAILS"),
    },
  };
  const newest = () => Math.max(0, ...[...document.querySelectorAll("li[data-seq]")].map((row) => Number(row.dataset.seq)));
  let known = newest();
  let running = false;
  let wanted = false;
  let last = 0;

  async function load() {
    const address = new URL(location.href);
    address.searchParams.delete("why");
    const answer = await fetch(address, { headers: { accept: "text/html" }, cache: "no-store" });
    if (answer.redirected) {
      location.reload();
      return null;
    }
    if (!answer.ok) return null;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    switchbell.localise(page);
    return page;
  }

  function apply(page, everything) {
    document.title = page.title;
    for (const old of document.querySelectorAll("[data-live]")) {
      const next = page.getElementById(old.id);
      if (!next) continue;
      if (!everything && "rows" in old.dataset && holds(old, next)) continue;
      Idiomorph.morph(old, next, morphing);
    }
  }

  // New rows do not push away what somebody reads further down: they wait behind a button.
  function holds(old, next) {
    const fresh = [...next.querySelectorAll("li[data-seq]")].filter((row) => Number(row.dataset.seq) > known);
    if (fresh.length === 0) return false;
    announce(fresh.length);
    const button = old.querySelector("#new");
    if (!button || old.getBoundingClientRect().top >= 0) return false;
    for (const row of old.querySelectorAll("li[data-seq]")) {
      const again = next.querySelector(`#${row.id}`);
      if (again) Idiomorph.morph(row, again, morphing);
    }
    button.textContent = `${fresh.length} new – show`;
    button.hidden = false;
    button.onclick = async () => {
      button.hidden = true;
      await switchbell.refresh(true);
      scrollTo({ top: 0 });
      document.querySelector(".rows a.title")?.focus({ preventScroll: true });
    };
    return true;
  }

  let told = 0;
  function announce(count) {
    const line = document.getElementById("announcement");
    if (!line || count === told) return;
    told = count;
    line.textContent = count === 1 ? "1 new notification" : `${count} new notifications`;
  }

  switchbell.refresh = async (everything) => {
    if (running) {
      wanted = true;
      return;
    }
    running = true;
    try {
      last = Date.now();
      const page = await load();
      if (page) {
        apply(page, everything);
        if (document.querySelector("#new:not([hidden])") === null) {
          known = Math.max(known, newest());
          told = 0;
        }
      }
    } catch {
      // The server is away: whoever follows it says so, and asks again once it is back.
    } finally {
      running = false;
      if (wanted) {
        wanted = false;
        switchbell.soon();
      }
    }
  };

  // Soon, but not more than once in a while.
  let waiting = 0;
  switchbell.soon = () => {
    if (waiting) return;
    const wait = Math.max(0, last + APART - Date.now());
    waiting = setTimeout(() => {
      waiting = 0;
      switchbell.refresh();
    }, wait);
  };

  const every = Number(document.getElementById("main")?.dataset.every ?? 0);
  if (every > 0) setInterval(() => document.hidden || switchbell.soon(), every * 1_000);
})();
