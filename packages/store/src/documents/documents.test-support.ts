import { defer, lastValueFrom, type Observable, of, toArray } from 'rxjs';
import type { IndexDocument } from './document-rows.js';
import type { IndexEmbedder } from './embed-texts.js';

/** A document with a chunk for each line that is not empty. */
export const documentOf = (source: string, text: string): IndexDocument => {
  let from = 0;
  const chunks = text.split('\n').flatMap((line, at) => {
    const chunk = { from, to: from + line.length, line: at + 1 };
    from += line.length + 1;
    return line === '' ? [] : [chunk];
  });
  return { source, text, chunks };
};

/** How often each of these letters occurs. */
export const letterVector = (text: string): readonly number[] =>
  Array.from('abcdefghij', (letter) => text.toLowerCase().split(letter).length - 1);

/** An embedder that notes what it is asked. */
export const notingEmbedder = (
  vectorOf: (text: string) => readonly number[] = letterVector,
  id = 'letters',
): IndexEmbedder & { readonly asked: (readonly string[])[] } => {
  const asked: (readonly string[])[] = [];
  return {
    id,
    asked,
    embed$: (texts) =>
      defer(() => {
        asked.push(texts);
        return of(texts.map(vectorOf));
      }),
  };
};

export const last = <T>(source$: Observable<T>): Promise<T> => lastValueFrom(source$);

export const all = <T>(source$: Observable<T>): Promise<T[]> =>
  lastValueFrom(source$.pipe(toArray()));
