// Copying, the reader's own time, forms that are sent once, and tables that stack on a phone. Without a
// script the buttons stay hidden, the text can be selected, times are in UTC, and tables scroll sideways.
const said = document.getElementById("said");

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    // No clipboard without TLS or permission: select the text, so that one keystroke copies it.
    const text = button.parentElement.querySelector("code");
    if (text) getSelection().selectAllChildren(text);
    return;
  }
  if (button.textContent === button.dataset.done) return;
  const before = button.innerHTML;
  button.textContent = said.textContent = button.dataset.done;
  setTimeout(() => { button.innerHTML = before; said.textContent = ""; }, 2000);
}

const DAY = { day: "numeric", month: "long", year: "numeric" };
const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const day = new Intl.DateTimeFormat("en-GB", DAY);

// As precise as the attribute, whose last letter is a Z: to the minute, the second, the millisecond.
function clock(precision) {
  const more = precision > 16 ? { second: "2-digit" } : {};
  return new Intl.DateTimeFormat("en-GB", { ...TIME, ...more, ...(precision > 19 && { fractionalSecondDigits: 3 }) });
}

function localise(time) {
  const at = new Date(time.dateTime);
  if (time.title || Number.isNaN(at.getTime()) || day.resolvedOptions().timeZone === "UTC") return;
  time.title = time.textContent;
  time.textContent = `${day.format(at)}, ${clock(time.dateTime.length - 1).format(at)}`;
}

function stack(table) {
  const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
  if (names.length < 2 || table.classList.contains("stack")) return;
  // Said again by role: cells that are displayed as blocks are no table's to a screen reader.
  table.setAttribute("role", "table");
  for (const group of table.querySelectorAll("thead, tbody")) group.setAttribute("role", "rowgroup");
  for (const row of table.rows) row.setAttribute("role", "row");
  for (const head of table.querySelectorAll("thead th")) head.setAttribute("role", "columnheader");
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, place) => {
      cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
      if (row.cells.length === names.length) cell.dataset.label = names[place];
      cell.classList.toggle("void", !cell.textContent.trim());
    });
  }
  table.classList.add("stack");
}

function dress(root) {
  for (const button of root.querySelectorAll("button[data-copy][hidden]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  root.querySelectorAll("time[datetime]").forEach(localise);
  root.querySelectorAll(".scroll > table").forEach(stack);
}

dress(document);
document.addEventListener("htmx:load", (event) => dress(event.detail.elt));

// A menu closes when something else is pressed or has the focus, which it would cover, and by Escape.
function closeMenus(but) {
  for (const menu of document.querySelectorAll("nav details[open]")) {
    if (!menu.contains(but)) menu.open = false;
  }
}
document.addEventListener("click", (event) => closeMenus(event.target));
document.addEventListener("focusin", (event) => closeMenus(event.target));
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("nav details[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// A second press of a form that is on its way sends nothing: the browser would drop the first answer,
// and with it a cookie or a token that comes but once. After a while it may: the first was stopped.
const ON_ITS_WAY_MS = 30_000;
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.getAttribute("method") !== "post") return;
  if (event.timeStamp - form.dataset.sentAt < ON_ITS_WAY_MS) return event.preventDefault();
  form.dataset.sentAt = event.timeStamp;
  said.textContent = said.dataset.sending;
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("[data-sent-at]")) delete form.dataset.sentAt;
  said.textContent = "";
});

// What did not come as it was asked for, a refusal or the page to sign in, is shown whole.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, pathInfo } = event.detail;
  const asked = new URL(pathInfo.finalRequestPath, location.href);
  if (xhr.status < 400 && new URL(xhr.responseURL).pathname === asked.pathname) return;
  event.detail.shouldSwap = false;
  location.assign(asked);
});

// A list that could not be asked for stays as it was, beside a filter that says something else.
function sayUnsent(isUnsent) {
  for (const one of document.querySelectorAll("[data-unsent]")) one.hidden = !isUnsent;
}
document.addEventListener("htmx:beforeRequest", () => sayUnsent(false));
document.addEventListener("htmx:sendError", () => sayUnsent(true));

// What is shown once does not come back when a browser keeps the page for its "back". Nor does HTMX
// leave behind which page was looked at.
addEventListener("pagehide", () => {
  for (const one of document.querySelectorAll("[data-once]")) one.remove();
  sessionStorage.clear();
});
