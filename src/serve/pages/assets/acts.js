// What changes something: forms are sent with the header that no other site can send, and the answer is a sentence.
(() => {
  "use strict";
  const { switchbell } = window;
  const STAYS = 6_000;
  const HEADER = { "Switchbell-Request": "1" };
  const notice = document.getElementById("notice");
  let leaving = 0;

  switchbell.tell = (text, isWrong = false) => {
    if (!notice) return;
    clearTimeout(leaving);
    notice.hidden = false;
    notice.classList.toggle("wrong", isWrong);
    notice.querySelector("p").textContent = text;
    if (!isWrong) leaving = setTimeout(() => (notice.hidden = true), STAYS);
  };
  notice?.querySelector("button").addEventListener("click", () => (notice.hidden = true));

  async function why(answer) {
    const text = await answer.text();
    try {
      return JSON.parse(text).detail ?? text;
    } catch {
      return text || `the server answered ${answer.status}`;
    }
  }

  // Sends something, and tells what came of it; whether it was done.
  switchbell.send = async (path, body, isQuiet = false) => {
    try {
      const answer = await fetch(path, { method: "POST", body, headers: HEADER });
      if (answer.status === 401) {
        location.reload();
        return false;
      }
      if (!answer.ok) {
        if (!isQuiet) switchbell.tell(await why(answer), true);
        return false;
      }
      const text = await answer.text();
      if (!isQuiet) switchbell.tell(text);
      return true;
    } catch {
      if (!isQuiet) switchbell.tell("The server cannot be reached: nothing was changed.", true);
      return false;
    }
  };

  async function submit(form, button, isQuiet) {
    const { act, ask } = form.dataset;
    if (ask && !confirm(ask)) return;
    const fields = new FormData(form, button);
    button?.setAttribute("aria-busy", "true");
    let done;
    if (act === "upload") {
      const file = fields.get("file");
      done = await switchbell.send(`${form.action}?from=${encodeURIComponent(file.name)}`, file);
      if (done) form.reset();
    } else {
      done = await switchbell.send(form.action, new URLSearchParams(fields), isQuiet);
    }
    button?.removeAttribute("aria-busy");
    if (act === "leave" && done) {
      location.assign("/");
    } else {
      if (done) for (const box of form.querySelectorAll("input[type=checkbox]:checked")) box.checked = false;
      await switchbell.refresh();
    }
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!("act" in form.dataset)) return;
    event.preventDefault();
    submit(form, event.submitter, false);
  });

  document.addEventListener("change", (event) => {
    if (!("all" in event.target.dataset)) return;
    for (const box of event.target.form.querySelectorAll(".pick input")) box.checked = event.target.checked;
  });

  // What is opened is read.
  const opened = document.querySelector("form[data-quietly=opened]");
  if (opened) {
    const read = () => submit(opened, opened.querySelector("button"), true);
    if (!document.hidden) read();
    else document.addEventListener("visibilitychange", read, { once: true });
  }
})();
