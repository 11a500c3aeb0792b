import { legend, lookOf, pathOf } from './glyphs.js';

/** The shapes of marbles, with their names. */
export const Legend = () => (
  <ul class="legend">
    {legend.map(({ kind, label }) => {
      const { shape, tone } = lookOf(kind);
      return (
        <li key={kind}>
          <svg width={16} height={16} aria-hidden="true">
            <path class={`marble ${shape} ${tone}`} d={pathOf(shape)} transform="translate(8 8)" />
          </svg>
          {label}
        </li>
      );
    })}
    <li class="notation">^ subscribed</li>
    <li class="notation">| complete</li>
    <li class="notation">! unsubscribed</li>
    {['fork', 'difference'].map((line) => (
      <li key={line}>
        <svg width={3} height={16} aria-hidden="true">
          <path class={`${line}-line`} d="M1.5 0v16" />
        </svg>
        {line}
      </li>
    ))}
  </ul>
);
