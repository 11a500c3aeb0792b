// The steps of two runs beside each other.
import { useMemo } from 'preact/hooks';
import { diffWords, pairSteps, stepPosition, type StepPair } from '../model/compare.js';
import type { Run } from '../model/run.js';
import type { DiagramRun } from './rows.js';

/** The longest texts that are compared word by word. */
const maxLength = 20_000;
const maxPairs = 60;

/** The steps of two runs. While one runs, its steps are compared as each of them ends. */
export const usePairs = (runs: readonly Run[]): readonly StepPair[] => {
  const [left, right] = runs;
  const sizes = runs
    .map(({ lanes, log, conversation }) =>
      lanes.root?.end === undefined
        ? `${conversation.parts.length} ${lanes.root?.tokens.output ?? 0}`
        : log.size,
    )
    .join();
  return useMemo(
    () => (left === undefined || right === undefined ? [] : pairSteps(left, right)),
    [left, right, sizes],
  );
};

/** The position at which the first step begins that differs; `undefined` without one. */
export const differenceIn = (run: Run, pairs: readonly StepPair[]): number | undefined => {
  const first = pairs.find(({ isSame }) => !isSame);
  const root = run.lanes.root;
  if (first === undefined || root === undefined) return undefined;
  return first.step === 'call' ? 0 : stepPosition(run, root.callId, first.step);
};

interface DifferenceProps {
  readonly runs: readonly DiagramRun[];
  readonly pairs: readonly StepPair[];
}

export const Difference = ({ runs, pairs }: DifferenceProps) => {
  const [left, right] = runs;
  if (left === undefined || right === undefined) {
    return (
      <p class="empty">
        Choose a second call in the list (⇄), or fork a call: both are shown on one time axis, with
        their differences here.
      </p>
    );
  }
  const first = pairs.find(({ isSame }) => !isSame);
  return (
    <div class="difference" data-testid="difference">
      <p class="summary">
        {first === undefined ? 'All steps are the same.' : `The first difference: ${first.label}.`}
      </p>
      <div class="words sides">
        <span>{left.title}</span>
        <span>{right.title}</span>
      </div>
      {pairs.slice(0, maxPairs).map((pair) => (
        <Pair key={pair.step} pair={pair} isFirst={pair === first} />
      ))}
      {pairs.length > maxPairs && <p class="empty">{pairs.length - maxPairs} more steps</p>}
    </div>
  );
};

const Pair = ({ pair, isFirst }: { readonly pair: StepPair; readonly isFirst: boolean }) => {
  const { label, left, right, isSame } = pair;
  if (isSame) {
    return (
      <p class="pair same">
        <span>{label}</span> the same
      </p>
    );
  }
  return (
    <article class={isFirst ? 'pair first' : 'pair'} data-step={pair.step}>
      <h3>
        {label}
        {isFirst && <span class="status held">first difference</span>}
      </h3>
      {left === undefined || right === undefined ? (
        <p class={left === undefined ? 'only right' : 'only left'}>
          {(left ?? right ?? '').slice(0, maxLength)}
        </p>
      ) : (
        <Words left={left} right={right} />
      )}
    </article>
  );
};

/** Two texts side by side, word by word. */
export const Words = ({ left, right }: { readonly left: string; readonly right: string }) => {
  const pieces = useMemo(
    () => diffWords(left.slice(0, maxLength), right.slice(0, maxLength)),
    [left, right],
  );
  const text = (side: 'left' | 'right') =>
    pieces
      .filter((piece) => piece.in !== (side === 'left' ? 'right' : 'left'))
      .slice(0, 120)
      .map((piece, index) =>
        piece.in === 'both' ? (
          piece.text
        ) : side === 'left' ? (
          <del key={index}>{piece.text}</del>
        ) : (
          <ins key={index}>{piece.text}</ins>
        ),
      );
  return (
    <div class="words">
      <p>{text('left')}</p>
      <p>{text('right')}</p>
    </div>
  );
};
