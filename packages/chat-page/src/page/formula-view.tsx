import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { lazyModule } from './lazy-module.js';

const useTemml = lazyModule(() => import('temml'));

/** Longer ones are shown as TeX. */
const maxLength = 5_000;

/** TeX as MathML; until its library is loaded, and if it is wrong, as it is. */
export const Formula = ({ tex, isBlock }: { readonly tex: string; readonly isBlock: boolean }) => {
  const temml = useTemml(tex.length <= maxLength)?.default;
  const place = useRef<HTMLSpanElement>(null);
  const [isDrawn, setDrawn] = useState(false);
  useLayoutEffect(() => {
    const { current } = place;
    if (current === null || temml === undefined) return;
    try {
      temml.render(tex, current, { ...limits, displayMode: isBlock, throwOnError: true });
      setDrawn(true);
    } catch {
      current.replaceChildren();
      setDrawn(false);
    }
  }, [temml, tex, isBlock]);
  return (
    <span class={isBlock ? 'formula block' : 'formula'} tabIndex={isBlock ? 0 : undefined}>
      <span ref={place} />
      {!isDrawn && <code>{tex}</code>}
    </span>
  );
};

/** Sizes in em and pt, and how many macros are expanded. */
const limits = { maxSize: [50, 500], maxExpand: 1_000 } satisfies {
  maxSize: [number, number];
  maxExpand: number;
};
