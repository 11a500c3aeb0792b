import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { h } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { type Markdown, parseMarkdown } from './markdown.js';
import { MarkdownView } from './markdown-view.js';

const htmlOf = (text: string, isOpen = false): string =>
  renderToString(h(MarkdownView, { text, isOpen }));

/** What the page draws, without what all links and blocks of code have. Formulas are `tex()` until their library is loaded. */
const drawn = (text: string, isOpen = false): string =>
  htmlOf(text, isOpen)
    .replaceAll(/^<div class="markdown">|<\/div>$/gu, '')
    .replaceAll(' target="_blank" rel="noopener noreferrer nofollow"', '')
    .replaceAll(/<figcaption><span>(.*?)<\/span>.*?<\/figcaption>/gu, '$1: ')
    .replaceAll(/<\/?pre[^>]*>| class="code"| type="button"| tabindex="-?\d"| start="1"/gu, '')
    .replaceAll(
      /<span class="formula( block)?"><span><\/span><code>([^<]*)<\/code><\/span>/gu,
      'tex$1($2)',
    )
    .replaceAll(/<div class="scrolls"[^>]*>|(?<=<\/table>)<\/div>/gu, '');

describe('Markdown within a line', () => {
  it.each([
    ['**bold** and *soft* and _soft_', '<strong>bold</strong> and <em>soft</em> and <em>soft</em>'],
    ['***both***', '<em><strong>both</strong></em>'],
    ['**a *b* c**', '<strong>a <em>b</em> c</strong>'],
    ['2 * 3 * 4, snake_case_name, a ** b', '2 * 3 * 4, snake_case_name, a ** b'],
    ['~~gone~~ ~kept~', '<del>gone</del> ~kept~'],
    ['`a *b*` and ``a ` b`` and `open', '<code>a *b*</code> and <code>a ` b</code> and `open'],
    [
      '[a **b**](https://x.org/a_(b) "t") c',
      '<a href="https://x.org/a_(b)">a <strong>b</strong></a> c',
    ],
    ['[not a link] and [1]', '[not a link] and [1]'],
    [
      'see https://x.org/a?b=1_2. (http://y.org)',
      'see <a href="https://x.org/a?b=1_2">https://x.org/a?b=1_2</a>. (<a href="http://y.org/">http://y.org</a>)',
    ],
    [
      '<https://x.org> <mailto:a@x.org>',
      '<a href="https://x.org/">https://x.org</a> <a href="mailto:a@x.org">mailto:a@x.org</a>',
    ],
    // Names of files are no links.
    ['main.py, example.com, a@x.org', 'main.py, example.com, a@x.org'],
    ['![A cat](https://x.org/c.png)', '<a href="https://x.org/c.png">A cat</a>'],
    ['[![A cat](https://x.org/c.png)](https://y.org)', '<a href="https://y.org/">A cat</a>'],
    [
      '\\*a\\* \\q a&amp;b &lt; &#39; &#x27; &no; &hellip; &alpha;',
      "*a* \\q a&amp;b &lt; ' ' &amp;no; … α",
    ],
    ['one  \ntwo\\\nthree\nfour', 'one<br/>two<br/>three\nfour'],
  ])('%s', (text, expected) => {
    expect(drawn(text)).toBe(`<p>${expected}</p>`);
  });
});

describe('Markdown blocks', () => {
  it.each([
    ['# A\n\ntext\nmore\n## B ##', '<h3>A</h3><p>text\nmore</p><h4>B</h4>'],
    ['### A\n\n##### B\n\n###### C', '<h3>A</h3><h5>B</h5><h6>C</h6>'],
    ['> # A', '<blockquote><h3>A</h3></blockquote>'],
    ['Title\n===\n\n---\n***', '<h3>Title</h3><hr/><hr/>'],
    [
      '```ts\nlet a = *b*;\n\n# no\n```\nafter',
      '<figure>ts: <code>let a = *b*;\n\n# no</code></figure><p>after</p>',
    ],
    ['```\nstill open', '<figure>text: <code>still open</code></figure>'],
    ['- a\n- b\n  - c\n- d', '<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>'],
    ['3. a\n\n4. b', '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>'],
    ['- a\nlazy\n\nafter', '<ul><li>a\nlazy</li></ul><p>after</p>'],
    [
      '1. a\n   ```\n   x\n\n   y\n   ```',
      '<ol><li>a<figure>text: <code>x\n\ny</code></figure></li></ol>',
    ],
    [
      '> a\n> > b\n\nc',
      '<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote><p>c</p>',
    ],
    ['a | b\nc', '<p>a | b\nc</p>'],
    ['    indented\n\n    code', '<figure>text: <code>indented\n\ncode</code></figure>'],
    [
      'a [b] [c][b]\n\n[b]: https://x.org',
      '<p>a <a href="https://x.org/">b</a> <a href="https://x.org/">c</a></p>',
    ],
  ])('%j', (text, expected) => {
    expect(drawn(text)).toBe(expected);
  });

  it.each([
    ['1. a\n  - b\n2. c', '<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>'],
    [
      '10. a\n  - b\n    - c\n\n11. d',
      '<ol start="10"><li><p>a</p><ul><li>b<ul><li>c</li></ul></li></ul></li><li><p>d</p></li></ol>',
    ],
    ['1. a\n   - b\n2. c', '<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>'],
    ['1. a\n- b', '<ol><li>a</li></ol><ul><li>b</li></ul>'],
    ['```\n1. a\n  - b\n```', '<figure>text: <code>1. a\n  - b</code></figure>'],
    ['> 1. a\n>   - b', '<blockquote><ol><li>a<ul><li>b</li></ul></li></ol></blockquote>'],
  ])(
    'takes bullets that are indented by two as part of an item with a number: %j',
    (text, expected) => {
      expect(drawn(text)).toBe(expected);
    },
  );

  it('draws tasks', () => {
    const box = '<input type="checkbox" disabled aria-label="Open"/>';
    const done = '<input type="checkbox" checked disabled aria-label="Done"/>';
    expect(drawn('- [ ] a\n- [x] **b**\n- [y] c')).toBe(
      `<ul><li class="task">${box}a</li><li class="task">${done}<strong>b</strong></li><li>[y] c</li></ul>`,
    );
  });

  it('draws tables, with the alignment of their columns', () => {
    expect(drawn('text\n| a | b | c |\n|---|:-:|-:|\n| 1 | `x` |\n| 2 \\| 3 |\n\nend')).toBe(
      '<p>text</p><table><thead><tr><th>a</th><th class="center">b</th><th class="right">c</th></tr></thead>' +
        '<tbody><tr><td>1</td><td class="center"><code>x</code></td><td class="right"></td></tr>' +
        '<tr><td>2 | 3</td><td class="center"></td><td class="right"></td></tr></tbody></table><p>end</p>',
    );
  });

  it('numbers footnotes in the order of their marks, and draws them at the end', () => {
    const button = (number: number) =>
      `<sup><button aria-label="Footnote ${number}">${number}</button></sup>`;
    const html = drawn(
      'a[^b] c[^1] d[^b] [^no]\n\n[^1]: One\n  more\n[^b]: B *y*\n\n[^unused]: -\n\nend',
    );
    const [first = ''] = /id="([^"]+)-1"/u.exec(html)?.slice(1) ?? [];
    expect(html).toBe(
      `<p>a${button(1)} c${button(2)} d${button(1)} [^no]</p><p>end</p>` +
        `<ol class="footnotes" aria-label="Footnotes"><li id="${first}-1">B <em>y</em></li><li id="${first}-2">One\nmore</li></ol>`,
    );
  });
});

describe('formulas', () => {
  it.each([
    ['$x^2$, \\(a_b\\) and $\\text{5\\$}$', '<p>tex(x^2), tex(a_b) and tex(\\text{5\\$})</p>'],
    ['$5 and $6, US$5$, 5 $ or $ 6, a$b$', '<p>$5 and $6, US$5$, 5 $ or $ 6, a$b$</p>'],
    ['`$x$` \\$x$', '<p><code>$x$</code> $x$</p>'],
    ['so $$c$$ and \\[ d \\]', '<p>so tex block(c) and tex block(d)</p>'],
    ['see \\[1\\] and \\[a\\](b)', '<p>see [1] and [a](b)</p>'],
    ['$$\na\n= b\n$$\ntext', 'tex block(a\n= b)<p>text</p>'],
    [
      'text:\n\\[\nx \\\\[2pt]\n\\left(y\\right)\n\\]\nafter',
      '<p>text:</p>tex block(x \\\\[2pt]\n\\left(y\\right))<p>after</p>',
    ],
    ['- a\n\n  $$x$$', '<ul><li><p>a</p>tex block(x)</li></ul>'],
    ['$$\na\n\nb', '<p>$$\na</p><p>b</p>'],
  ])('%j', (text, expected) => {
    expect(drawn(text)).toBe(expected);
  });
});

describe('an answer that still arrives', () => {
  it.each([
    ['a **b', '<p>a <strong>b</strong></p>'],
    ['a **b*', '<p>a <strong>b</strong></p>'],
    ['a ~~b', '<p>a <del>b</del></p>'],
    ['a `b', '<p>a <code>b</code></p>'],
    ['[te', '<p>te</p>'],
    ['[te **x', '<p>te <strong>x</strong></p>'],
    ['[text](', '<p>text</p>'],
    ['[text](https://exa', '<p>text</p>'],
    ['![a](ht', '<p>a</p>'],
    ['see[^1', '<p>see</p>'],
    ['text\n-', '<p>text</p>'],
    ['text\n--', '<p>text</p>'],
    ['- a\n-', '<ul><li>a</li></ul>'],
    ['1. a\n2', '<ol><li>a</li></ol>'],
    ['- a\n  - **b', '<ul><li>a<ul><li><strong>b</strong></li></ul></li></ul>'],
    ['> a **b', '<blockquote><p>a <strong>b</strong></p></blockquote>'],
    ['x\n| a | b', '<p>x</p><table><thead><tr><th>a</th><th>b</th></tr></thead></table>'],
    ['| a | b |\n|--', '<table><thead><tr><th>a</th><th>b</th></tr></thead></table>'],
    ['```js\nlet a = **', '<figure>js: <code>let a = **</code></figure>'],
    ['```js\na\n``', '<figure>js: <code>a</code></figure>'],
    ['$$\nx', 'tex block(x)'],
    ['\\[\nx', 'tex block(x)'],
    ['a \\(x', '<p>a tex(x)</p>'],
  ])('%j', (text, expected) => {
    expect(drawn(text, true)).toBe(expected);
    expect(drawn(`before\n\n${text}`, true)).toBe(`<p>before</p>${expected}`);
  });

  it('shows its end as it is, once it has ended', () => {
    expect(drawn('a **b\n\n[text](https://exa')).toBe(
      '<p>a **b</p><p>[text](<a href="https://exa/">https://exa</a></p>',
    );
  });
});

describe('hostile Markdown', () => {
  it('has no HTML: it is text', () => {
    expect(
      drawn('<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\na <b onclick="x">b</b>'),
    ).toBe(
      '<p>&lt;script>alert(1)&lt;/script></p><p>&lt;img src=x onerror=alert(1)></p><p>a &lt;b onclick=&quot;x&quot;>b&lt;/b></p>',
    );
  });

  it.each([
    '[a](javascript:alert(1))',
    '[a](JaVaScRiPt:alert(1))',
    '[a](<java\tscript:alert(1)>)',
    '[a](&#106;avascript:alert(1))',
    '[a](data:text/html,x)',
    '[a](vbscript:x)',
    '[a](//x.org)',
    '[a](/x)',
    '[a](#x)',
    '[a](file:///etc/passwd)',
    '![a](javascript:alert(1))',
    '![a](data:image/png;base64,AAAA)',
    '<javascript:alert(1)>',
    'ftp://x.org //x.org',
    '[a]\n\n[a]: javascript:alert(1)',
  ])('has no link to %s', (text) => {
    expect(htmlOf(text)).not.toMatch(/<a |href|src/u);
    expect(htmlOf(text, true)).not.toMatch(/<a |href|src/u);
  });

  it('has only elements that are known and links to safe places, no matter what the text is', () => {
    const pieces = [
      '[',
      ']',
      '(',
      ')',
      '<',
      '>',
      '*',
      '**',
      '_',
      '`',
      '~~',
      '\n',
      '\n\n',
      '- ',
      '1. ',
      '> ',
      '|',
      '|-|-|\n',
      '#',
      ' ',
      '\\',
      '&#58;',
      'javascript:',
      'https://a.b',
      'data:',
      'x',
      '!',
      '```',
      '    ',
      '$',
      '$$',
      '\\(',
      '\\[',
      '\\]',
      '[^x]',
      '[^x]:',
      '[x]:',
      '<img onerror=x>',
    ];
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((it) => it.join(''));
    const elements =
      /^<(?:\/\w+|(?:br|hr|p|em|strong|del|ul|li|blockquote|thead|tbody|tr|code|sup|table|figcaption|h[3-6])\/?|ol start="\d+"|t[hd](?: class="\w+")?|a href="(?:https?:\/\/|mailto:)[^"]*" target="_blank" rel="noopener noreferrer nofollow"|figure class="code"|div class="(?:markdown|scrolls)"[^>]*|(?:pre|button|span|ol class="footnotes"|li id=|li class="task"|input type="checkbox")[^>]*)>$/u;
    fc.assert(
      fc.property(text, fc.boolean(), (source, isOpen) => {
        const html = htmlOf(source, isOpen);
        for (const [tag] of html.matchAll(/<[^>]*>/gu)) expect(tag).toMatch(elements);
      }),
    );
  });

  it.each(['*a ', '**a ', '_a ', '[a](', '> ', '- ', '1. ', '> - '])(
    'is drawn, however deep it is: %j',
    (mark) => {
      const html = htmlOf(`start\n\n${mark.repeat(20_000)}x${' b*'.repeat(20_000)}\n\nend`, true);
      expect(html).toMatch(/<p>start<\/p>.*<p>end<\/p>/su);
    },
  );

  it('keeps the text of emphasis that is too deep', () => {
    const html = htmlOf(`${'*a '.repeat(1_000)}x${' b*'.repeat(1_000)}`);
    expect(html.match(/a /gu)).toHaveLength(1_000);
    expect(html.match(/<em>/gu)?.length).toBeLessThan(150);
  });
});

describe('Markdown that grows', () => {
  /** Its blocks, without the numbers of lines. */
  const shape = ({ blocks }: Markdown): string =>
    JSON.stringify(blocks, (key, value: unknown) => (key === 'map' ? undefined : value));
  const isAsParsedWhole = (pieces: readonly string[]): void => {
    let known: Markdown | undefined;
    pieces.forEach((_, at) => {
      const text = pieces.slice(0, at + 1).join('');
      known = parseMarkdown(text, known);
      expect(shape(known)).toBe(shape(parseMarkdown(text)));
      // Text may have no block, such as that of blank lines.
      const sources = known.blocks.map(({ source }) => source).join('');
      expect(known.blocks.length === 0 ? text : sources).toBe(text);
    });
  };
  const text =
    '# A\n\nOne **two\n** three.\n\n- a\n- b\n\n1. a\n  - b\n\n2. c\n\n> q\nlazy\n\n```js\nlet a;\n```\n\n| a |\n|---|\n| 1 |\n\n$$\nx\n$$\n\nEnd.';

  it.each([text, 'a [b] [^c]\n\nd\n\n[b]: https://x.org\n\n[^c]: e\n\nf'])(
    'is at each moment as if it were parsed whole: %j',
    (whole) => {
      isAsParsedWhole([...whole]);
    },
  );

  it('is at each moment as if it were parsed whole, in any pieces it arrives', () => {
    const pieces = [
      ...[
        'a',
        'b c',
        '\n',
        '\n\n',
        '- ',
        '1. ',
        '2',
        '. ',
        '> ',
        '  ',
        '   ',
        '    ',
        '```\n',
        '| a |\n',
      ],
      ...[
        '|-|\n',
        '# ',
        '---',
        '=',
        '**',
        '$$',
        '\\[\n',
        '\\]\n',
        '[x]',
        ': https://a.b\n',
        '[^x]',
        ': n\n',
      ],
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 25 }), isAsParsedWhole),
      {
        examples: [
          [['$$', '\\]\n', '# ', '|-|\n', 'a', '$$']],
          [['a', '| a |\n', '|-|\n', '---', 'a']],
        ],
      },
    );
  });

  it('keeps the blocks before', () => {
    let known = parseMarkdown('');
    for (let length = 1; length <= text.length; length += 1) {
      const next = parseMarkdown(text.slice(0, length), known);
      const ended = known.blocks
        .slice(0, -2)
        .findLastIndex(({ source }) => source.endsWith('\n\n'));
      known.blocks.slice(0, ended + 1).forEach((block, at) => {
        expect(next.blocks[at]).toBe(block);
      });
      known = next;
    }
    expect(known.blocks.length).toBeGreaterThan(8);
    expect(shape(parseMarkdown('Other', known))).toBe(shape(parseMarkdown('Other')));
  });
});
