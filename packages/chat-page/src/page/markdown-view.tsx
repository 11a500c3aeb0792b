import type { ComponentChildren, JSX } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { type Block, parseMarkdown } from './markdown.js';
import type { Node } from './markdown-inline.js';
import { CopyButton } from './pieces.js';

/** Text as Markdown. While it grows, only its last block is parsed and rendered again. */
export const Markdown = ({ text }: { readonly text: string }) => {
  const before = useRef<readonly Block[]>([]);
  const blocks = useMemo(() => (before.current = parseMarkdown(text, before.current)), [text]);
  // The page has the headings of the first two levels, and no level is left out.
  const top = Math.min(...blocks.map(({ node }) => (node.type === 'heading' ? node.depth : 6)));
  return (
    <div class="markdown">
      {blocks.map((block, at) => (
        <BlockView key={at} block={block} top={top} />
      ))}
    </div>
  );
};

const BlockView = ({ block, top }: { readonly block: Block; readonly top: number }) =>
  useMemo(() => {
    const { node } = block;
    return view(node.type === 'heading' ? { ...node, depth: node.depth - top + 1 } : node, 0);
  }, [block.source, top]);

const headings = ['h3', 'h4', 'h5'] as const;

const views = (nodes: readonly Node[]): ComponentChildren => nodes.map(view);

const view = (node: Node, key: number): JSX.Element => {
  switch (node.type) {
    case 'text':
      return <>{node.text}</>;
    case 'code':
      return <code key={key}>{node.text}</code>;
    case 'fence':
      return <Code key={key} text={node.text} language={node.language} />;
    case 'break':
      return <br key={key} />;
    case 'rule':
      return <hr key={key} />;
    case 'link':
      return (
        <a key={key} href={node.href} target="_blank" rel="noopener noreferrer nofollow">
          {views(node.nodes)}
        </a>
      );
    case 'heading': {
      const Heading = headings[node.depth - 1] ?? 'h6';
      return <Heading key={key}>{views(node.nodes)}</Heading>;
    }
    case 'list': {
      const items = node.items.map(({ nodes, isChecked }, at) => (
        <li key={at} class={isChecked === undefined ? undefined : 'task'}>
          {isChecked !== undefined && (
            <input
              type="checkbox"
              checked={isChecked}
              disabled
              aria-label={isChecked ? 'Done' : 'Open'}
            />
          )}
          {views(nodes)}
        </li>
      ));
      return node.start === undefined ? (
        <ul key={key}>{items}</ul>
      ) : (
        <ol key={key} start={node.start}>
          {items}
        </ol>
      );
    }
    case 'table':
      return (
        <div key={key} class="scrolls" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>
              <tr>
                {node.head.map((cell, at) => (
                  <th key={at} class={node.align[at]}>
                    {views(cell)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {node.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, column) => (
                    <td key={column} class={node.align[column]}>
                      {views(cell)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case 'group':
      return <>{views(node.nodes)}</>;
    case 'paragraph':
      return <p key={key}>{views(node.nodes)}</p>;
    case 'quote':
      return <blockquote key={key}>{views(node.nodes)}</blockquote>;
    case 'strong':
      return <strong key={key}>{views(node.nodes)}</strong>;
    case 'emphasis':
      return <em key={key}>{views(node.nodes)}</em>;
    case 'deleted':
      return <del key={key}>{views(node.nodes)}</del>;
  }
};

const Code = ({ text, language }: { readonly text: string; readonly language: string }) => (
  <figure class="code">
    <figcaption>
      <span>{language || 'text'}</span>
      <CopyButton text={text} />
    </figcaption>
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
  </figure>
);
