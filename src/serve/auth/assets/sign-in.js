// Redeems the link in the fragment; else leads on who is signed in already, whose cookie a browser does not send when another
// site leads here.
const form = document.getElementById("sign-in");
const said = document.getElementById("said");
const back = form.elements.back.value;

async function signIn(presented) {
  said.textContent = "Signing in …";
  try {
    const answer = await fetch("/sign-in", {
      method: "POST",
      headers: { "Content-Type": "application/json", "Switchbell-Request": "1" },
      body: JSON.stringify({ ...presented, back }),
    });
    const told = await answer.json();
    if (answer.ok) {
      location.replace(told.back);
      return;
    }
    said.textContent = told.detail;
  } catch {
    said.textContent = "The server does not answer. Try again in a moment.";
  }
  form.elements.token.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn({ token: form.elements.token.value });
});

async function begin() {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (link) {
    // Nobody finds it in the history or behind a shoulder.
    history.replaceState(null, "", location.pathname + location.search);
    await signIn({ link });
    return;
  }
  const answer = await fetch("/session").catch(() => null);
  if (answer?.ok) location.replace(back);
}

begin();
