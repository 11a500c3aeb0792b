import { type ComponentChildren, Fragment, h } from 'preact';
import { useId, useMemo, useRef } from 'preact/hooks';
import { Code } from './code-view.js';
import { Formula } from './formula-view.js';
import { type Block, type Markdown, type Node, parseMarkdown, withOpenEnd } from './markdown.js';
import { safeUrl } from './safe-url.js';

interface MarkdownProps {
  readonly text: string;
  /** Whether more of the text may follow. */
  readonly isOpen?: boolean;
}

/** Text as Markdown. While it grows, only its last blocks are parsed and rendered again. */
export const MarkdownView = ({ text, isOpen = false }: MarkdownProps) => {
  const before = useRef<Markdown | undefined>(undefined);
  const markdown = useMemo(() => (before.current = parseMarkdown(text, before.current)), [text]);
  const { blocks } = useMemo(() => (isOpen ? withOpenEnd(markdown) : markdown), [markdown, isOpen]);
  const id = useId();
  // The page has the headings of the first two levels, and no level is left out.
  const top = Math.min(...blocks.map(({ token }) => headingLevel(token.tag) ?? 6));
  const numbers = numbersOf(markdown.definitions === '' ? [] : blocks);
  const shared = [top, id, markdown.definitions, [...numbers.keys()].join(' ')];
  const place = { top, id, numbers, isGrowing: false, isLink: false };
  return (
    <div class="markdown">
      {blocks.map((block, at) => (
        <BlockView
          key={at}
          block={block}
          place={{ ...place, isGrowing: isOpen && at === blocks.length - 1 }}
          shared={shared}
        />
      ))}
      {numbers.size > 0 && <Footnotes blocks={blocks} place={place} />}
    </div>
  );
};

/** The surroundings of a token that is drawn. */
interface Place {
  /** The highest level of the headings. */
  readonly top: number;
  /** The beginning of the ids of footnotes. */
  readonly id: string;
  /** Of the footnotes that are referred to, by their labels. */
  readonly numbers: ReadonlyMap<string, number>;
  readonly isGrowing: boolean;
  readonly isLink: boolean;
}

const BlockView = (props: {
  readonly block: Block;
  readonly place: Place;
  readonly shared: readonly unknown[];
}) =>
  useMemo(
    () => <>{view(props.block, props.place)}</>,
    [props.block.source, props.place.isGrowing, ...props.shared],
  );

type Drawing = (node: Node, place: Place) => ComponentChildren;

const view: Drawing = (node, place) => (drawings.get(node.token.type) ?? inside)(node, place);

const inside: Drawing = ({ nodes }, place) =>
  nodes.map((node, at) => <Fragment key={at}>{view(node, place)}</Fragment>);

const element =
  (tag: string): Drawing =>
  (node, place) =>
    h(tag, null, inside(node, place));

const headingLevel = (tag: string): number | undefined => {
  const [, level] = /^h([1-6])$/u.exec(tag) ?? [];
  return level === undefined ? undefined : Number(level);
};

/** The elements of tokens. Those of the others, such as of tight paragraphs, are what is inside them. */
const drawings: ReadonlyMap<string, Drawing> = new Map<string, Drawing>([
  ['text', ({ token }) => token.content],
  ['text_special', ({ token }) => token.content],
  ['softbreak', () => '\n'],
  ['hardbreak', () => <br />],
  ['hr', () => <hr />],
  ['em_open', element('em')],
  ['strong_open', element('strong')],
  ['s_open', element('del')],
  ['blockquote_open', element('blockquote')],
  ['bullet_list_open', element('ul')],
  ['thead_open', element('thead')],
  ['tbody_open', element('tbody')],
  ['tr_open', element('tr')],
  ['paragraph_open', (node, place) => (node.token.hidden ? inside : element('p'))(node, place)],
  ['heading_open', (node, place) => heading(node, place)],
  ['ordered_list_open', (node, place) => orderedList(node, place)],
  ['list_item_open', (node, place) => item(node, place)],
  ['table_open', (node, place) => table(node, place)],
  ['th_open', (node, place) => cell(node, place)],
  ['td_open', (node, place) => cell(node, place)],
  ['code_inline', ({ token }) => <code>{token.content}</code>],
  ['code_block', (node, place) => code(node, place)],
  ['fence', (node, place) => code(node, place)],
  ['math_inline', ({ token }) => <Formula tex={token.content} isBlock={false} />],
  ['math_block', ({ token }) => <Formula tex={token.content} isBlock />],
  ['link_open', (node, place) => link(node, place, 'href')],
  // A picture becomes a link: to load it would report that it was seen.
  ['image', (node, place) => link(node, place, 'src')],
  ['footnote_mark', (node, place) => footnoteMark(node, place)],
  // They are at the end.
  ['footnote_open', () => null],
]);

const heading: Drawing = (node, place) => {
  const level = (headingLevel(node.token.tag) ?? 6) - place.top + 3;
  return h(`h${Math.min(Math.max(level, 3), 6)}`, null, inside(node, place));
};

const orderedList: Drawing = (node, place) => (
  <ol start={Number(node.token.attrGet('start') ?? 1)}>{inside(node, place)}</ol>
);

const item: Drawing = (node, place) => {
  const { isChecked } = node.token.meta ?? {};
  if (typeof isChecked !== 'boolean') return <li>{inside(node, place)}</li>;
  return (
    <li class="task">
      <input
        type="checkbox"
        checked={isChecked}
        disabled
        aria-label={isChecked ? 'Done' : 'Open'}
      />
      {inside(node, place)}
    </li>
  );
};

const table: Drawing = (node, place) => (
  <div class="scrolls" tabIndex={0} role="region" aria-label="Table">
    <table>{inside(node, place)}</table>
  </div>
);

const cell: Drawing = (node, place) => {
  const [align] = /right|center/u.exec(String(node.token.attrGet('style'))) ?? [];
  return h(node.token.tag, { class: align }, inside(node, place));
};

const code: Drawing = ({ token }, { isGrowing }) => (
  <Code
    text={token.content.replace(/\n$/u, '')}
    language={/^\S*/u.exec(token.info)?.[0] ?? ''}
    isGrowing={isGrowing}
  />
);

const link = (node: Node, place: Place, attribute: 'href' | 'src') => {
  const href = safeUrl(String(node.token.attrGet(attribute)));
  if (href === undefined || place.isLink) return inside(node, place);
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {inside(node, { ...place, isLink: true })}
    </a>
  );
};

// ---------------------------------------------------------------- footnotes

/** Numbers footnotes in the order in which the text refers to them. */
const numbersOf = (blocks: readonly Block[]): ReadonlyMap<string, number> => {
  const numbers = new Map<string, number>();
  const read = (nodes: readonly Node[]): void => {
    for (const { token, nodes: deeper } of nodes) {
      if (token.type === 'footnote_mark' && !numbers.has(token.info)) {
        numbers.set(token.info, numbers.size + 1);
      }
      read(deeper);
    }
  };
  read(blocks);
  return numbers;
};

/** The address of the page names the conversation, so a link cannot lead to a place in it. */
const show = (id: string): void => {
  const place = document.getElementById(id);
  place?.scrollIntoView({ block: 'nearest' });
  place?.focus();
};

const footnoteMark: Drawing = ({ token }, { numbers, id, isLink }) => {
  const number = numbers.get(token.info);
  if (number === undefined || isLink) return <sup>{number}</sup>;
  return (
    <sup>
      <button
        type="button"
        aria-label={`Footnote ${number}`}
        onClick={() => show(`${id}-${number}`)}
      >
        {number}
      </button>
    </sup>
  );
};

const Footnotes = (props: { readonly blocks: readonly Block[]; readonly place: Place }) => {
  const { blocks, place } = props;
  const found = new Map(
    blocks.flatMap((block) =>
      block.token.type === 'footnote_open' ? [[block.token.info, block] as const] : [],
    ),
  );
  return (
    <ol class="footnotes" aria-label="Footnotes">
      {[...place.numbers].map(([label, number]) => {
        const footnote = found.get(label);
        return (
          <li key={number} id={`${place.id}-${number}`} tabIndex={-1}>
            {footnote !== undefined && inside(footnote, place)}
          </li>
        );
      })}
    </ol>
  );
};
