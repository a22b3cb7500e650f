// The graphical console: noVNC, keys that a browser keeps to itself, and a text typed key by key.
import { onKeys, onText, over, place, protocols, say, url } from "./connection.js";
import RFB from "./novnc/core/rfb.js";

const CONTROL = [0xffe3, "ControlLeft"];
const ALT = [0xffe9, "AltLeft"];
const SHIFT = [0xffe1, "ShiftLeft"];
const SHIFTED = /[A-Z~!@#$%^&*()_+{}|:"<>?]/; // QEMU presses no Shift by itself; a display knows the keys of a US keyboard
const NAMED = { "\n": 0xff0d, "\t": 0xff09, "\b": 0xff08 };

const rfb = new RFB(place, url, { wsProtocols: protocols, shared: true });
rfb.scaleViewport = true;
rfb.addEventListener("connect", () => {
  say("Connected.");
  rfb.focus();
});
rfb.addEventListener("disconnect", () => over());
rfb.addEventListener("securityfailure", () => over("The display asks for a password."));

function press(keys) {
  for (const [keysym, code] of keys) rfb.sendKey(keysym, code, true);
  for (const [keysym, code] of keys.toReversed()) rfb.sendKey(keysym, code, false);
}

const keys = {
  "ctrl-alt-del": () => rfb.sendCtrlAltDel(),
  escape: () => press([[0xff1b, "Escape"]]),
  tab: () => press([[0xff09, "Tab"]]),
};
for (const number of [1, 2, 3, 4]) {
  keys[`ctrl-alt-f${number}`] = () => press([CONTROL, ALT, [0xffbd + number, `F${number}`]]);
}
onKeys(keys, () => rfb.focus());

onText((text) => {
  for (const letter of text) {
    const code = letter.codePointAt(0);
    const key = [NAMED[letter] ?? (code < 0x100 ? code : 0x1000000 + code), null];
    press(SHIFTED.test(letter) ? [SHIFT, key] : [key]);
  }
}, () => rfb.focus());
