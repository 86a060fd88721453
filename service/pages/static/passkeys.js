// Asking the browser for a passkey, whose answer goes into the form. Without a script the page says
// what is needed, and the button stays hidden.
const form = document.querySelector("form[data-passkey]");

function bytes(text) {
  const plain = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

function base64url(buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function options() {
  const given = JSON.parse(form.dataset.options);
  given.challenge = bytes(given.challenge);
  // Another at every press: an authenticator keeps one passkey a user handle, and would put one that
  // the server then refuses into the place of one that it knows.
  if (given.user) given.user.id = crypto.getRandomValues(new Uint8Array(64));
  for (const one of given.allowCredentials ?? given.excludeCredentials ?? []) one.id = bytes(one.id);
  return given;
}

let isAsked = false;

async function ask(event) {
  if (form.elements.credential.value) return; // the answer: pages.js sends it once
  event.preventDefault();
  if (isAsked) return;
  isAsked = true;
  for (const one of form.querySelectorAll("[data-failed]")) one.hidden = true;
  try {
    const made = await navigator.credentials[form.dataset.passkey]({ publicKey: options() });
    const response = {};
    for (const part of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
      if (made.response[part]) response[part] = base64url(made.response[part]);
    }
    const answer = { id: made.id, rawId: base64url(made.rawId), type: made.type, response };
    form.elements.credential.value = JSON.stringify(answer);
  } catch (error) {
    // What is said of an error by its name, or else of any.
    const failed = form.querySelector(`[data-failed="${error.name}"]`) ?? form.querySelector("[data-failed]");
    failed.hidden = false;
  }
  isAsked = false;
  // As a second press, which every browser takes: requestSubmit is missing in Safari before 16.
  if (form.elements.credential.value) form.querySelector("button").click();
}

if (form && window.PublicKeyCredential) {
  form.querySelector("button").hidden = false;
  form.querySelector("[data-needed]").hidden = true;
  form.addEventListener("submit", ask);
  addEventListener("pageshow", () => { form.elements.credential.value = ""; });
}
