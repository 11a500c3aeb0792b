import { useMemo } from 'preact/hooks';
import { lazyModule } from './lazy-module.js';
import { CopyButton } from './pieces.js';

const useColors = lazyModule(() => import('./code-colors.js'));

/** A block of code with its language. It gets its colors when it no longer grows. */
export const Code = (props: {
  readonly text: string;
  readonly language: string;
  readonly isGrowing: boolean;
}) => {
  const { text, language, isGrowing } = props;
  const colors = useColors(language !== '' && !isGrowing);
  const lines = useMemo(() => colors?.tokenLines(text, language), [colors, text, language]);
  return (
    <figure class="code">
      <figcaption>
        <span>{language || 'text'}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre tabIndex={0}>
        <code>
          {lines?.map((tokens, line) => (
            <span key={line}>
              {line === 0 ? '' : '\n'}
              {tokens.map(({ type, value }, at) =>
                plain.has(type) ? (
                  value
                ) : (
                  <span key={at} class={type}>
                    {value}
                  </span>
                ),
              )}
            </span>
          )) ?? text}
        </code>
      </pre>
    </figure>
  );
};

/** Tokens that have the color of text. */
const plain: ReadonlySet<string> = new Set(['identifier', 'sign', 'space', 'break', 'jsxliterals']);
