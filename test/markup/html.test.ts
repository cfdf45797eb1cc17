import { test } from "uvu";
import * as assert from "uvu/assert";
import { Html, htmlTag } from "../../src/markup/html.js";

const html = htmlTag((text) => text);

test("values are text, whatever they hold; markup stays markup", () => {
  assert.is(
    html`<p title="${`a"b'c`}">${"<b>&amp;</b>"}${new Html("<i>x</i>")}</p>`.markup,
    '<p title="a&quot;b&#39;c">&lt;b&gt;&amp;amp;&lt;/b&gt;<i>x</i></p>',
  );
});

test("absent values render nothing, and zero is a number", () => {
  assert.is(html`[${null}${undefined}${false}${""}]`.markup, "[]");
  assert.is(html`[${0}|${-1.5}|${Number.NaN}]`.markup, "[0|-1.5|NaN]");
});

test("lists render as their parts, nested ones included", () => {
  const inner = html`<li>${"<"}</li>`;
  assert.is(html`${[inner, null, ["a", [false, 2]], "&"]}`.markup, "<li>&lt;</li>a2&amp;");
  assert.is(html`none`.markup, "none");
});

test("a face formats texts before they are escaped, and markup stays as it is", () => {
  const loud = htmlTag((text) => `<${text.toUpperCase()}>`);
  assert.is(
    loud`<p>${"a"}${["b", new Html("<br>")]}${1}</p>`.markup,
    "<p>&lt;A&gt;&lt;B&gt;<br>&lt;1&gt;</p>",
  );
});

test.run();
