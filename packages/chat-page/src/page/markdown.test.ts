import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { type Block, parseMarkdown } from './markdown.js';
import { type Node, parseInline } from './markdown-inline.js';

const nodesOf = (text: string): readonly Node[] => parseMarkdown(text).map(({ node }) => node);

/** A short form of nodes: `strong(a)`. */
const short = (nodes: readonly Node[]): string =>
  nodes
    .map((node) => {
      switch (node.type) {
        case 'text':
          return node.text;
        case 'code':
          return `code(${node.text})`;
        case 'fence':
          return `fence:${node.language}(${node.text})`;
        case 'link':
          return `link:${node.href}(${short(node.nodes)})`;
        case 'heading':
          return `h${node.depth}(${short(node.nodes)})`;
        case 'list': {
          const items = node.items.map(({ nodes: inside, isChecked }) => {
            const box = isChecked === undefined ? '' : isChecked ? '[x]' : '[ ]';
            return `${box}${short(inside)}`;
          });
          return `${node.start === undefined ? 'ul' : `ol:${node.start}`}(${items.join('; ')})`;
        }
        case 'table':
          return `table(${[node.head, ...node.rows].map((row) => row.map(short).join(' | ')).join('; ')})`;
        case 'break':
        case 'rule':
          return `<${node.type}>`;
        case 'group':
          return short(node.nodes);
        default:
          return `${node.type}(${short(node.nodes)})`;
      }
    })
    .join('');

const inline = (text: string): string => short(parseInline(text));
const blocks = (text: string): string => short(nodesOf(text));

const allNodes = (nodes: readonly Node[]): readonly Node[] =>
  nodes.flatMap((node): readonly Node[] => [
    node,
    ...('nodes' in node ? allNodes(node.nodes) : []),
    ...(node.type === 'list' ? node.items.flatMap((item) => allNodes(item.nodes)) : []),
    ...(node.type === 'table' ? [node.head, ...node.rows].flat().flatMap(allNodes) : []),
  ]);

describe('Markdown within a line', () => {
  it.each([
    ['**bold** and *soft* and _soft_', 'strong(bold) and emphasis(soft) and emphasis(soft)'],
    ['***both***', 'strong(emphasis(both))'],
    ['**a *b* c**', 'strong(a emphasis(b) c)'],
    ['**a *b**', 'strong(a *b)'],
    ['2 * 3 * 4, snake_case_name, a ** b', '2 * 3 * 4, snake_case_name, a ** b'],
    ['~~gone~~ ~kept~', 'deleted(gone) ~kept~'],
    ['`a *b*` and ``a ` b`` and `open', 'code(a *b*) and code(a ` b) and `open'],
    ['[a **b**](https://x.org/a_(b) "t") c', 'link:https://x.org/a_(b)(a strong(b)) c'],
    ['[not a link] and [1]', '[not a link] and [1]'],
    [
      'see https://x.org/a?b=1_2. (http://y.org)',
      'see link:https://x.org/a?b=1_2(https://x.org/a?b=1_2). (link:http://y.org/(http://y.org))',
    ],
    [
      '<https://x.org> <mailto:a@x.org>',
      'link:https://x.org/(https://x.org) link:mailto:a@x.org(mailto:a@x.org)',
    ],
    ['![A cat](https://x.org/c.png)', 'link:https://x.org/c.png(A cat)'],
    ['\\*a\\* \\q a&amp;b &lt; &#39; &#x27; &no; &hellip;', "*a* \\q a&b < ' ' &no; …"],
    ['one  \ntwo\\\nthree\nfour', 'one  <break>two<break>three\nfour'],
  ])('%s', (text, expected) => {
    expect(inline(text)).toBe(expected);
  });
});

describe('Markdown blocks', () => {
  it.each([
    ['# A\n\ntext\nmore\n## B ##', 'h1(A)paragraph(text\nmore)h2(B)'],
    ['Title\n===\n\n---\n***', 'h1(Title)<rule><rule>'],
    ['```ts\nlet a = *b*;\n\n# no\n```\nafter', 'fence:ts(let a = *b*;\n\n# no)paragraph(after)'],
    ['```\nstill open', 'fence:(still open)'],
    ['- a\n- b\n  - c\n- d', 'ul(a; bul(c); d)'],
    ['1. a\n  - b\n2. c', 'ol:1(aul(b); c)'],
    ['3. a\n\n4. b', 'ol:3(paragraph(a); paragraph(b))'],
    ['- [ ] a\n- [x] b', 'ul([ ]a; [x]b)'],
    ['- a\nlazy\n\nafter', 'ul(a\nlazy)paragraph(after)'],
    ['1. a\n   ```\n   x\n\n   y\n   ```', 'ol:1(paragraph(a)fence:(x\n\ny))'],
    ['> a\n> > b\n\nc', 'quote(paragraph(a)quote(paragraph(b)))paragraph(c)'],
    [
      'text\n| a | b |\n|---|:-:|\n| 1 | `x` |\n| 2 \\| 3 |\n\nend',
      'paragraph(text)table(a | b; 1 | code(x); 2 | 3 | )paragraph(end)',
    ],
    ['a | b\nc', 'paragraph(a | b\nc)'],
    ['    indented\n\n    code', 'fence:(indented\n\ncode)'],
  ])('%j', (text, expected) => {
    expect(blocks(text)).toBe(expected);
  });
});

describe('the columns of a table', () => {
  it.each([
    ['|---|:---|---:|:-:|', [undefined, undefined, 'right', 'center']],
    ['--- | -: | :- | :---:', [undefined, 'right', undefined, 'center']],
  ])('are aligned as their rule says: %s', (rule, align) => {
    expect(nodesOf(`| a | b | c | d |\n${rule}\n| 1 | 2 |`)).toMatchObject([
      { type: 'table', align },
    ]);
  });
});

describe('hostile Markdown', () => {
  it('has no HTML: it is text', () => {
    const html =
      '<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\na <b onclick="x">b</b>';
    const nodes = allNodes(nodesOf(html));
    expect(new Set(nodes.map(({ type }) => type))).toEqual(new Set(['paragraph', 'text']));
    expect(blocks('<script>alert(1)</script>')).toBe('paragraph(<script>alert(1)</script>)');
  });

  it.each([
    '[a](javascript:alert(1))',
    '[a](JaVaScRiPt:alert(1))',
    '[a](<java\tscript:alert(1)>)',
    '[a](&#106;avascript:alert(1))',
    '[a](data:text/html,x)',
    '[a](vbscript:x)',
    '[a](//x.org)',
    '[a](file:///etc/passwd)',
    '![a](javascript:alert(1))',
    '<javascript:alert(1)>',
  ])('has no link to %s', (text) => {
    const all = allNodes(parseInline(text));
    expect(all.filter(({ type }) => type === 'link')).toEqual([]);
  });

  it('has links only to safe places, whatever the text is', () => {
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
    ];
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 40 }).map((it) => it.join(''));
    fc.assert(
      fc.property(text, (source) => {
        for (const node of allNodes(nodesOf(source))) {
          if (node.type === 'link') expect(node.href).toMatch(/^(?:https?:\/\/|mailto:)/u);
        }
      }),
    );
  });

  it('takes time in proportion to its length', () => {
    const size = 30_000;
    const patterns = [
      '>',
      '[',
      '*a',
      '**a ',
      '_',
      '`a',
      '``a`',
      '- ',
      '[a](',
      '[](',
      '](',
      '<',
      '<a ',
      'a\n',
      '|a',
      '![',
      '~~a',
      'http://',
      '- a\n',
      '> a\n',
      ' ',
      '\\',
      '&',
      '#',
      '1. a\n  1. b\n',
      '```\n',
      '[a](x "',
      '***a',
      '* * *\n\n',
      '|\n|-|\n\n',
      'a\n- ',
      '(',
      '\t',
      '((',
      '[a]((',
    ];
    const began = process.cpuUsage().user / 1_000;
    for (const pattern of patterns) {
      const text = pattern.repeat(size / pattern.length);
      expect(parseMarkdown(text).length).toBeGreaterThanOrEqual(pattern.trim() === '' ? 0 : 1);
      parseMarkdown(`a${text}b`);
    }
    const deep = `${'*a '.repeat(size)}${'b* '.repeat(size)}`;
    expect(allNodes(parseInline(deep)).length).toBeGreaterThan(1);
    // Quadratic time would be minutes.
    expect(process.cpuUsage().user / 1_000 - began).toBeLessThan(10_000);
  });
});

describe('Markdown that grows', () => {
  it('is at each moment as if it were parsed whole, and keeps the blocks before the last', () => {
    const text =
      '# A\n\nOne **two\n** three.\n\n- a\n- b\n\n```js\nlet a;\n```\n\n| a |\n|---|\n| 1 |\n\nEnd.';
    let known: readonly Block[] = [];
    for (let length = 1; length <= text.length; length += 1) {
      const next = parseMarkdown(text.slice(0, length), known);
      expect(next).toEqual(parseMarkdown(text.slice(0, length)));
      expect(next.map(({ source }) => source).join('')).toBe(text.slice(0, length));
      known.slice(0, -1).forEach((block, at) => {
        expect(next[at]).toBe(block);
      });
      known = next;
    }
    expect(parseMarkdown('Other', known)).toEqual(parseMarkdown('Other'));
  });
});
