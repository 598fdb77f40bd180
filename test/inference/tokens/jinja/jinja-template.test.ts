import { describe, expect, test } from "bun:test";
import { JinjaTemplate } from "../../../../src/inference/tokens/jinja/jinja-template.ts";
import { loads } from "../../../../src/inference/tokens/jinja/json-value.ts";
import { strftime } from "../../../../src/inference/tokens/jinja/strftime.ts";
import type { Dict, Value } from "../../../../src/inference/tokens/jinja/values.ts";

const VARIABLES = loads(
  '{"items_param": {"items": 1, "keys": "k", "a": 1.0}, "e": 1e-07, "big": 12345678901234567890, "f": 100.0, "l": [3, 1, 2], "s": " Na\u00efve \ud83e\udd16\\tx \ufeff", "d": {"10": "a", "2": "b"}, "msgs": [{"role": "user", "content": "u"}, {"role": "tool", "content": "t"}], "nothing": null}',
) as Dict;

function render(template: string): string {
  const now = new Date(2026, 1, 3, 4, 5, 6);
  const variables = new Map<string, Value>([
    ...([...VARIABLES.entries()] as [string, Value][]),
    ["strftime_now", ([format]: Value[]) => strftime(now, String(format))],
  ]);
  return new JinjaTemplate(template).render(variables);
}

/** Templates, and what Python's Jinja 3.1 writes for them in the sandbox of transformers. */
const RENDERED: [template: string, text: string][] = [
  [
    "{{ items_param.items() | list }}|{{ items_param['items'] }}|{{ items_param.keys() | list }}",
    "[('items', 1), ('keys', 'k'), ('a', 1.0)]|1|['items', 'keys', 'a']",
  ],
  [
    "{{ d }}|{{ d | tojson }}|{{ d.items() | first }}",
    "{'10': 'a', '2': 'b'}|{\"10\": \"a\", \"2\": \"b\"}|('10', 'a')",
  ],
  [
    "{{ e }}|{{ e | tojson }}|{{ f }}|{{ f | tojson }}|{{ big }}|{{ big + 1 }}",
    "1e-07|1e-07|100.0|100.0|12345678901234567890|12345678901234567891",
  ],
  [
    "{{ [1, 1.0, true, none, 'a\"b', \"it's\"] }}|{{ (1,) }}|{{ (1, 2) }}",
    "[1, 1.0, True, None, 'a\"b', \"it's\"]|(1,)|(1, 2)",
  ],
  [
    "{{ s | length }}|{{ s[0:3] }}|{{ s[-3] }}|{{ s.strip() }}|{{ s | trim | length }}",
    "12| Na|x|Na\u00efve \ud83e\udd16\tx \ufeff|11",
  ],
  [
    "{{ '%s is %d and %.2f' | format('x', 3, 2.5) }}|{{ '%5d|%-5s|%05.1f' % (7, 'a', 2.25) }}",
    "x is 3 and 2.50|    7|a    |002.2",
  ],
  [
    "{{ '{} {1} {name!r:>5}'.format('a', name='b') if false else '{0} {1} {name!r:>5}'.format('a', 2, name='b') }}",
    "a 2   'b'",
  ],
  [
    "{{ l | min }}|{{ l | max }}|{{ l | sum }}|{{ l | sort }}|{{ l | sort(reverse=true) | join('-') }}",
    "1|3|6|[1, 2, 3]|3-2-1",
  ],
  [
    "{{ {1: 'a', 2.0: 'b', true: 'c'} }}|{{ {1: 'a'}[1] }}|{{ {1: 'a'} | tojson }}",
    "{1: 'c', 2.0: 'b'}|a|{\"1\": \"a\"}",
  ],
  [
    "{{ msgs | selectattr('role', 'equalto', 'tool') | map(attribute='content') | list }}|{{ msgs | rejectattr('role', 'in', ['tool']) | list | length }}",
    "['t']|1",
  ],
  [
    "{{ nothing | default('x') }}|{{ nothing | default('x', true) }}|{{ missing | default('y') }}|{{ missing }}",
    "None|x|y|",
  ],
  [
    "{% for m in msgs %}{{ loop.index }}{{ loop.last }}{{ loop.previtem.role if loop.previtem is defined }};{% endfor %}",
    "1False;2Trueuser;",
  ],
  [
    "{% set ns = namespace(n=0) %}{% for x in l if x > 1 %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
    "5",
  ],
  [
    "{% macro m(a, b='z') %}[{{ a }}{{ b }}{{ caller() if caller }}]{% endmacro %}{{ m(1) }}{% call m(2, b=3) %}in{% endcall %}",
    "[1z][23in]",
  ],
  [
    "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}{% for k, v in d | items %}{{ k }}{% endfor %}",
    "10=a;2=b;102",
  ],
  [
    "{{ 7 // 2 }}|{{ -7 // 2 }}|{{ -7 % 3 }}|{{ 2 ** 70 }}|{{ 7 / 2 }}|{{ 1e16 }}|{{ 0.1 + 0.2 }}|{{ 10 ** -2 }}",
    "3|-4|2|1180591620717411303424|3.5|1e+16|0.30000000000000004|0.01",
  ],
  [
    "{{ 'a,b,,c'.split(',') }}|{{ ' a  b '.split() }}|{{ 'a b c'.rsplit(' ', 1) }}|{{ 'x\\ny\\r\\nz'.splitlines() }}",
    "['a', 'b', '', 'c']|['a', 'b']|['a b', 'c']|['x', 'y', 'z']",
  ],
  [
    "{{ 'abc'.find('c') }}|{{ 'abc'.replace('b', '') }}|{{ 'aXbX'.partition('X') }}|{{ 'ab' * 3 }}|{{ 'abc'.removeprefix('a') }}",
    "2|ac|('a', 'X', 'bX')|ababab|bc",
  ],
  [
    "{{ \"they're bill's\" | title }}|{{ \"they're bill's\".title() }}|{{ 'hELLO wORLD' | capitalize }}",
    "They're Bill's|They'Re Bill'S|Hello world",
  ],
  ["{{ 'a\\nb\\n\\nc' | indent(2) }}|{{ 'a\\nb' | indent(2, true) }}", "a\n  b\n\n  c|  a\n  b"],
  [
    "{{ d | tojson(indent=2) }}|{{ '\u00e9\\u2028<' | tojson }}|{{ '\u00e9' | tojson(ensure_ascii=true) }}|{{ l | tojson(separators=(',', ':')) }}",
    '{\n  "10": "a",\n  "2": "b"\n}|"\u00e9\u2028<"|"\\u00e9"|[3,1,2]',
  ],
  [
    "{{ '1' | int + 1 }}|{{ 'x' | int(5) }}|{{ '2.7' | int }}|{{ '2.7' | float }}|{{ 2.5 | round }}|{{ 3.456 | round(2) }}|{{ 7 | round }}",
    "2|5|2|2.7|2.0|3.46|7",
  ],
  ["{{ 1 if missing }}|{{ 'a' if not missing else 'b' }}|{{ not none is defined }}", "|a|False"],
  [
    "{{ l is iterable }}{{ 'a' is string }}{{ d is mapping }}{{ 1.0 is float }}{{ true is number }}{{ true is integer }}{{ 's' is sequence }}{{ d is sequence }}",
    "TrueTrueTrueTrueTrueFalseTrueTrue",
  ],
  [
    "{{ l[::-1] }}|{{ l[1:] }}|{{ l[-1] }}|{{ l | first }}|{{ l | last }}|{{ [] | first }}|{{ l | reverse | list }}",
    "[2, 1, 3]|[1, 2]|2|3|2||[2, 1, 3]",
  ],
  [
    "{{ 'x' ~ 1 ~ none ~ 1.0 ~ missing }}|{{ 'a' 'b' }}|{{ \"a\\tb\\x41\\u00e9\" }}|{{ 'a\\qb' }}",
    "x1None1.0|ab|a\tbA\u00e9|a\\qb",
  ],
  [
    '{{ "<a>" | safe + "<b>" }}|{{ "<" | escape }}|{{ ("<" | safe) ~ "<" }}',
    "<a>&lt;b&gt;|&lt;|<<",
  ],
  [
    "{{ range(3) | list }}|{{ range(5, 0, -2) | list }}|{{ range(3) }}|{{ dict(a=1, b='x') }}",
    "[0, 1, 2]|[5, 3, 1]|range(0, 3)|{'a': 1, 'b': 'x'}",
  ],
  [
    "{{ strftime_now('%A %j %p %I %-d %B %d %Y %H:%M:%S %y %b %a %%') }}|{{ strftime_now('%e %U %W %w %u %V %G %F %T %R %D %k %l') }}",
    "Tuesday 034 AM 04 3 February 03 2026 04:05:06 26 Feb Tue %| 3 05 05 2 2 06 2026 2026-02-03 04:05:06 04:05 02/03/26  4  4",
  ],
  [
    "{% set x %}a{{ 1 }}{% endset %}{{ x }}{% set y | upper %}b{% endset %}{{ y }}{% filter upper %}c{% endfilter %}",
    "a1BC",
  ],
  [
    "{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}{% for x in [] %}a{% else %}none{% endfor %}",
    "123none",
  ],
  [
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "3",
  ],
  [
    "{% generation %}{{ 'said' }}{% endgeneration %}{% raw %}{{ x }}{% endraw %}{# no #}.",
    "said{{ x }}.",
  ],
  [
    "{%- set a, b = [1, 2] %}{{ a }}{{ b }}{% with c = a + 1 %}{{ c }}{% endwith %}{{ c is defined }}",
    "122False",
  ],
  [
    "{{ 1 < 2 < 3 }}|{{ 1 == 1.0 }}|{{ 'a' in 'abc' }}|{{ 'a' not in d }}|{{ 'b' > 'a' and 1 or 2 }}|{{ none or 'x' }}",
    "True|True|True|True|1|x",
  ],
  [
    "{{ [1, 2] + [3] }}|{{ 'n' in {'n': 1} }}|{{ d.get('2') }}|{{ d.get('x', 'y') }}|{{ d['10'] }}|{{ msgs[0]['role'] }}",
    "[1, 2, 3]|True|b|y|a|user",
  ],
  [
    "{{ '\ud83e\udd16a'[0] }}|{{ '\ud83e\udd16a' | length }}|{{ '\ud83e\udd16a' | reverse }}|{{ '\ud83e\udd16a'.find('a') }}|{{ ['\ud83e\udd16\\u200b'] }}",
    "\ud83e\udd16|2|a\ud83e\udd16|1|['\ud83e\udd16\\u200b']",
  ],
  [
    "{{ l | map('string') | join(',') }}|{{ ['a', 'B', 'a'] | unique | list }}|{{ l | select('gt', 1) | list }}|{{ l | batch(2) | list }}",
    "3,1,2|['a', 'B']|[3, 2]|[[3, 1], [2]]",
  ],
  [
    "{{ true | string }}|{{ true | tojson }}|{{ 1 | string is string }}|{{ none | string }}|{{ [missing] }}",
    "True|true|True|None|[Undefined]",
  ],
  [
    "{{ '' is none }}{{ msgs | length > 1 and msgs[0].role == 'user' }}{{ msgs[5] is defined }}{{ msgs[-1].content }}",
    "FalseTrueFalset",
  ],
  [
    "{{ 'a' | center(5) }}|{{ 'abc'.center(6, '*') }}|{{ '7'.zfill(3) }}|{{ 'a'.ljust(3) }}|{{ 'abcdef' | truncate(5, true, '..', 0) }}",
    "  a  |*abc**|007|a  |abc..",
  ],
  [
    "{{ 1_000 }}|{{ 0x1f }}|{{ 1.5e3 }}|{{ -2 ** 2 }}|{{ (-2) | abs }}|{{ 5 | float }}|{{ '%x' % 255 }}|{{ '{:,}'.format(1234567) }}",
    "1000|31|1500.0|4|2|5.0|ff|1,234,567",
  ],
  ["{{ (l | map('abs')) is iterable }}{{ 'x' if l | select('gt', 9) else 'y' }}", "Truex"],
  ["{%- for i in range(2) -%}  {{ i }}  {%- endfor +%}  z", "01  z"],
];

/** Templates that Python's Jinja refuses, when it reads them or renders them. */
const REFUSED = [
  "{{ missing.x }}",
  "{{ l.append(1) }}",
  "{{ none + 1 }}",
  "{{ 'a' + 1 }}",
  "{{ missing() }}",
  "{{ l | nosuch }}",
  "{% for a, b in l %}{% endfor %}",
  "{{ missing | tojson }}",
  "{{ raise_exception('no ' ~ 1) }}",
  "{{ [] < 1 }}",
  "{{ 1 // 0 }}",
  "{% if x %}",
  "{{ 'a' in none }}",
  "{{ ''.__class__.__mro__ }}",
];

describe("a template of Jinja", () => {
  test.each(RENDERED)("is rendered as Python does: %s", (template, text) => {
    expect(render(template)).toBe(text);
  });

  test.each(REFUSED)("is refused as by Python: %s", (template) => {
    expect(() => render(template)).toThrow();
  });

  test.each([
    ["a\n{{ x | pprint }}", 'line 2: the filter "pprint" is not supported'],
    ["{% include 'x' %}", "line 1: the tag {% include %} is not supported"],
    ["\n\n{{ 'x'.encode() }}", 'line 3: the method "encode" is not supported'],
    ["{{ cycler('a') }}", 'the function "cycler" is not supported'],
    ["{{ x | nosuch }}", "line 1: No filter named 'nosuch'."],
    ["a\n{{ x ", "line 2: unexpected end of template"],
  ])("names the line of what is not supported when it is read: %s", (template, message) => {
    expect(() => new JinjaTemplate(template)).toThrow(message);
  });

  test("refuses a filter that nobody knows only where it is used, if it may not be", () => {
    expect(render("{% if false %}{{ 1 | nosuch }}{% endif %}a")).toBe("a");
    expect(() => render("{% if true %}{{ 1 | nosuch }}{% endif %}")).toThrow("line 1: No filter");
  });

  test("keeps JSON as Python's json does, through reading and writing", () => {
    const text = '{"10": 1.0, "2": [1e-07, 12345678901234567890, -0.0, 1E5, NaN], "10": 2}';
    const template = new JinjaTemplate("{{ x | tojson }}");
    expect(template.render(new Map([["x", loads(text)]]))).toBe(
      '{"10": 2, "2": [1e-07, 12345678901234567890, -0.0, 100000.0, NaN]}',
    );
    for (const bad of ["{", '{"a" 1}', "[1,]", "01", "'a'", '"\n"', "1 2", "{1: 2}"]) {
      expect(() => loads(bad)).toThrow(SyntaxError);
    }
  });
});
