import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Fields, fieldsOf, listOf, textOf, viewOf } from './fields.js';
import { safeUrl } from './safe-url.js';
import { plainWords, Values } from './values-view.js';

/** Draws the data of a tool into an empty element. May return a function that cleans up when it is removed. */
type Renderer = (element?: HTMLElement, data?: unknown) => unknown;

const mostRows = 500;

/** The result of a tool: a table, a picture, a link, what a module of the site draws, or else its values. */
export const ToolOutput = (props: {
  readonly output: unknown;
  /** The module of the site with renderers. */
  readonly renderers: string | undefined;
  /** The schema of the result, with its titles. */
  readonly schema: Fields;
}) => {
  const { output, renderers, schema } = props;
  const data = fieldsOf(output);
  const plain = <Values label="Result" value={output} schema={schema} />;
  switch (viewOf(output)) {
    case 'table':
      return <Table {...data} />;
    case 'picture': {
      // Pictures of other sites would report that they were seen.
      const url = textOf(data['url']);
      return url.startsWith('data:image/') ? (
        <img class="view" src={url} alt={textOf(data['alt']) || 'Picture'} />
      ) : (
        <Link {...data} />
      );
    }
    case 'link':
      return <Link {...data} />;
    case '':
      return plain;
    default:
      return renderers === undefined ? (
        plain
      ) : (
        <Foreign data={output} module={renderers} instead={plain} />
      );
  }
};

const Table = ({ columns, rows, caption }: Fields) => {
  const shown = listOf(rows).slice(0, mostRows);
  const left = listOf(rows).length - shown.length;
  return (
    <div class="view table" tabIndex={0} role="group" aria-label={textOf(caption) || 'Table'}>
      <table>
        {textOf(caption) !== '' && <caption>{textOf(caption)}</caption>}
        <thead>
          <tr>
            {listOf(columns).map((name, at) => (
              <th key={at} scope="col">
                {cellOf(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, at) => (
            <tr key={at}>
              {listOf(row).map((cell, column) => (
                <td key={column} class={typeof cell === 'number' ? 'number' : undefined}>
                  {cellOf(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && <p class="notice">{left.toLocaleString()} more rows are not shown.</p>}
    </div>
  );
};

const cellOf = (value: unknown): string => (value === null ? '' : plainWords(value));

const Link = ({ url, title }: Fields) => {
  const href = safeUrl(textOf(url));
  const text = textOf(title) || textOf(url);
  return href === undefined ? (
    <p class="view">{text}</p>
  ) : (
    <p class="view">
      <a href={href} target="_blank" rel="noopener noreferrer nofollow">
        {text}
      </a>
    </p>
  );
};

/** A view that a module of the site draws. It gets data and an empty element; without a renderer for the view, or if that fails, its values are shown. */
const Foreign = (props: {
  readonly data: unknown;
  readonly module: string;
  /** Shown if it fails. */
  readonly instead: ComponentChildren;
}) => {
  const { data, module, instead } = props;
  const place = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState<unknown>();
  useEffect(() => {
    let remove: () => unknown = () => undefined;
    let isShown = true;
    loaded(module)
      .then((renderers) => {
        if (isShown && place.current) remove = drawn(renderers, place.current, data);
      })
      .catch(() => {
        setFailed(data);
      });
    return () => {
      isShown = false;
      tried(remove);
      place.current?.replaceChildren();
    };
  }, [data, module]);
  return failed === data ? <>{instead}</> : <div class="view" ref={place} />;
};

/** Draws data, and returns the function that cleans up. */
const drawn = (renderers: Fields, element: HTMLElement, data: unknown): (() => unknown) => {
  const view = viewOf(data);
  const render = Object.hasOwn(renderers, view) ? renderers[view] : undefined;
  if (!isCallable(render)) throw new Error('There is no such renderer.');
  const remove = render(element, data);
  return isCallable(remove) ? remove : () => undefined;
};

/** The module is the site's own. */
const isCallable = (value: unknown): value is Renderer => typeof value === 'function';

const tried = (work: () => unknown): void => {
  try {
    work();
  } catch (error) {
    reportError(error);
  }
};

const loaded = async (path: string): Promise<Fields> => {
  const module: unknown = await import(/* @vite-ignore */ path);
  return fieldsOf(fieldsOf(module)['default']);
};
