// Follows what changes. Of all tabs of a workspace one has the connection, since a browser allows few to one server; it tells
// the others. Whoever takes over, or comes back after the server was away, has replayed what came meanwhile.
(() => {
  "use strict";
  const { switchbell } = window;
  const NAMES = ["ready", "notification.created", "notification.read", "notification.acknowledged", "delivery.changed", "gap", "reset"];
  const WAIT_MIN = 1_000;
  const WAIT_MAX = 30_000;
  const main = document.getElementById("main");
  const banner = document.getElementById("connection");
  const { stream, events = "" } = main?.dataset ?? {};
  if (!stream || !events || !window.EventSource) return;

  const followed = events.split(" ");
  let last = main.dataset.after;
  let wait = WAIT_MIN;
  let wasLost = false;
  let source = null;
  const others = window.BroadcastChannel ? new BroadcastChannel(`switchbell ${stream}`) : null;

  function take({ name, id, isLost }) {
    if (isLost !== undefined) return stand(isLost);
    if (id) last = id;
    if (followed.some((beginning) => name.startsWith(beginning))) switchbell.soon();
  }

  function tell(what) {
    others?.postMessage(what);
    take(what);
  }

  function stand(isLost) {
    if (isLost === wasLost) return;
    wasLost = isLost;
    banner.hidden = !isLost;
    banner.textContent = isLost ? "Connection lost, trying again. What comes meanwhile is shown then." : "";
    main.dataset.connected = String(!isLost);
    if (!isLost) switchbell.soon();
  }

  function connect() {
    source?.close();
    source = new EventSource(`${stream}?after=${encodeURIComponent(last)}`);
    source.onopen = () => {
      wait = WAIT_MIN;
      main.dataset.connected = "true";
      tell({ isLost: false });
    };
    source.onerror = () => {
      tell({ isLost: true });
      // A server that answers, but not with a stream, is asked anew by us; one that is away, by the browser.
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(connect, wait);
      wait = Math.min(2 * wait, WAIT_MAX);
    };
    for (const name of NAMES) source.addEventListener(name, (event) => tell({ name, id: event.lastEventId }));
  }

  others?.addEventListener("message", (event) => take(event.data));
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    if (source) connect();
    switchbell.soon();
  });

  if (navigator.locks && others) navigator.locks.request(`switchbell ${stream}`, () => new Promise(connect));
  else connect();
})();
