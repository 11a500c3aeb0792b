import type { Embedder } from 'millrace';
import { defer, of } from 'rxjs';

/** Makes the same vector of the same characters, in whatever order: how often each of a to z occurs. */
export const letterVector = (text: string): readonly number[] =>
  Array.from('abcdefghijklmnopqrstuvwxyz', (letter) => text.toLowerCase().split(letter).length - 1);

/** Things that are called by several words. */
const meanings: readonly (readonly string[])[] = [
  ['stop', 'unsubscribe', 'cancel', 'abort', 'quit', 'halt'],
  ['slow', 'backpressure', 'gate', 'sluggish', 'overwhelmed'],
  ['money', 'budget', 'cost', 'spend', 'expensive', 'price'],
  ['test', 'scripted', 'expect', 'mock', 'fake'],
  ['oven', 'bread', 'flour', 'bake', 'dough'],
];

/** Makes the same vector of the same meanings, in whatever words. */
export const meaningVector = (text: string): readonly number[] => {
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  return meanings.map(
    (group) => words.filter((word) => group.some((it) => word.startsWith(it))).length,
  );
};

/** An embedder that notes what it is asked for. */
export interface NotingEmbedder extends Embedder {
  readonly asked: (readonly string[])[];
}

export const notingEmbedder = (
  vectorOf: (text: string) => readonly number[],
  fails: (texts: readonly string[]) => boolean = () => false,
): NotingEmbedder => {
  const asked: (readonly string[])[] = [];
  return {
    asked,
    embed$: (texts) =>
      defer(() => {
        asked.push(texts);
        if (fails(texts)) throw new Error('The embedder is away.');
        return of(texts.map(vectorOf));
      }),
  };
};
