import { type Observable, of } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import type { InputMessage } from '../../seams/input.js';
import type { Interceptor } from '../../seams/interceptor.js';
import { textBlock } from '../../values/message.js';
import type { Preparation } from '../../seams/preparation.js';
import { scriptedModel } from '../../testing/index.js';

/** A call that nobody has made. */
export const callOf = (metadata: Readonly<Record<string, string>> = {}): CallInfo => ({
  rootId: 'r',
  callId: 'c',
  agent: ['agent'],
  metadata,
});

/** A message of a user. */
export const said = (text: string): InputMessage => ({ role: 'user', content: [textBlock(text)] });

/** What a call begins with. */
export const preparationOf = (
  input: readonly InputMessage[],
  metadata?: Readonly<Record<string, string>>,
  history: readonly InputMessage[] = [],
): Preparation => ({ call: callOf(metadata), input, history, options: { model: scriptedModel() } });

/** What a guard makes of a preparation. */
export const guarded$ = (
  { hook }: Interceptor,
  preparation: Preparation,
): Observable<Preparation> => {
  if (hook.kind !== 'prepare') throw new Error(`A guard of inputs, not of '${hook.kind}'.`);
  return of(preparation).pipe(hook.operator);
};

/** What a synchronous guard says of texts, each a message, or all blocks of one: that they are allowed, or its error. */
export const verdictOn = (
  guard: Interceptor,
  texts: string | readonly string[] | readonly InputMessage[],
  inBlocks = false,
  metadata?: Readonly<Record<string, string>>,
): unknown => {
  const parts = typeof texts === 'string' ? [texts] : texts;
  const blocks = parts.map((it) => textBlock(typeof it === 'string' ? it : ''));
  const input: readonly InputMessage[] = inBlocks
    ? [{ role: 'user', content: blocks }]
    : parts.map((it) => (typeof it === 'string' ? said(it) : it));
  let verdict: unknown = 'nothing';
  guarded$(guard, preparationOf(input, metadata)).subscribe({
    next: (out) => {
      verdict = out.input === input ? 'allowed' : 'edited';
    },
    error: (error: unknown) => {
      verdict = error;
    },
  });
  return verdict;
};
