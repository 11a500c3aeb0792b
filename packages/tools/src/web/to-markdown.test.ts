import { describe, expect, it } from '@jest/globals';
import { toMarkdown } from './to-markdown.js';

const textOf = (html: string): string => toMarkdown(html, 'https://mill.test/docs/page?x=1').text;

describe('toMarkdown', () => {
  it.each([
    ['wheel.html', 'https://mill.test/docs/wheel.html'],
    ['../up', 'https://mill.test/up'],
    ['/root', 'https://mill.test/root'],
    ['?y=2', 'https://mill.test/docs/page?y=2'],
    ['#part', 'https://mill.test/docs/page?x=1#part'],
    ['//other.test/', 'https://other.test/'],
    ['mailto:a@mill.test', 'mailto:a@mill.test'],
    ['HTTPS://Other.Test', 'https://other.test/'],
  ])('makes the link %j absolute', (href, url) => {
    expect(textOf(`<p><a href="${href}">x</a></p>`)).toBe(`[x](${url})`);
  });

  it.each([
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    ' java\nscript:alert(1)',
    '\u0001javascript:alert(1)',
    '&#106;avascript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://mill.test/x',
    'http://[',
  ])('keeps only the text of the link %j', (href) => {
    expect(textOf(`<p><a href="${href}">x</a></p>`)).toBe('x');
    expect(textOf(`<p>x<img src="${href}" alt="y"></p>`)).toBe('x');
  });

  it('escapes text that looks like a link', () => {
    expect(textOf('<p>[x](javascript:y) &lt;javascript:z&gt;</p>')).toBe(
      '\\[x](javascript:y) \\<javascript:z>',
    );
  });

  it('resolves against <base>, but not against one with another scheme', () => {
    const link = '<p><a href="a">x</a></p>';
    expect(textOf(`<base href="/other/">${link}`)).toBe('[x](https://mill.test/other/a)');
    expect(textOf(`<base href="javascript:x">${link}`)).toBe('[x](https://mill.test/docs/a)');
  });

  it('takes the main content, or else all but navigation, forms and scripts', () => {
    const around = (content: string) =>
      `<nav>Home</nav>${content}<form><button>Send</button></form><script>run()</script><footer>Imprint</footer>`;
    expect(textOf(around('<p>Before.</p><main><h1>Mill</h1></main>'))).toBe('# Mill');
    expect(textOf(around('<p>Only this.</p>'))).toBe('Only this.');
  });

  it.each([
    ['<title>The\n  Mill &amp; more</title><p>x</p>', 'The Mill & more'],
    ['<p>x</p><svg><title>Icon</title></svg>', 'Icon'],
    [`<title>${'x'.repeat(900)}</title>`, 'x'.repeat(200)],
    ['<title></title><p>x</p>', ''],
    ['<p>x</p>', ''],
  ])('finds the title of %j', (html, title) => {
    expect(toMarkdown(html, 'https://mill.test/').title).toBe(title);
    expect(textOf(html)).not.toContain('Mill');
  });
});
