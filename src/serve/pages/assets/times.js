// Moments in the reader's own zone. The server writes UTC, which stays where the pointer rests.
window.switchbell = {};
(() => {
  "use strict";
  const { switchbell } = window;
  const MINUTE = 60_000;
  const RELATIVE_MAX = 60 * MINUTE;
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

  function words(at, now) {
    const apart = now - at;
    const minutes = Math.floor(Math.abs(apart) / MINUTE);
    if (Math.abs(apart) < RELATIVE_MAX) {
      if (minutes === 0) return apart >= 0 ? "just now" : "in a moment";
      return apart >= 0 ? `${minutes} min ago` : `in ${minutes} min`;
    }
    if (at.toDateString() === now.toDateString()) return clock.format(at);
    return (at.getFullYear() === now.getFullYear() ? day : year).format(at);
  }

  // Writes the moments of a part of the page, or of a page that is not shown yet.
  switchbell.localise = (root) => {
    const now = new Date();
    for (const element of root.querySelectorAll("time[datetime]")) {
      const at = new Date(element.dateTime);
      const text = Number.isNaN(at.getTime()) ? null : words(at, now);
      if (text !== null && element.textContent !== text) element.textContent = text;
    }
  };

  switchbell.localise(document);
  setInterval(() => document.hidden || switchbell.localise(document), MINUTE / 2);
})();
