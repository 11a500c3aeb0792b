import { map, type Observable, of } from 'rxjs';
import type { Environment } from './environment.js';
import type { AskArguments } from './command-line/arguments.js';
import { readQuestion$ } from './terminal/read-question.js';

export type GivenQuestion =
  | { readonly type: 'question'; readonly text: string }
  | { readonly type: 'none' }
  /** A question is required; `why` is the error message. */
  | { readonly type: 'missing'; readonly why: string };

/** Emits the question from the arguments, else from stdin. Waits for a pipe until it ends. */
export const givenQuestion$ = (
  { question, json }: Pick<AskArguments, 'question' | 'json'>,
  { stdin, stderr, scheduler }: Pick<Environment, 'stdin' | 'stderr' | 'scheduler'>,
): Observable<GivenQuestion> => {
  if (question !== '' && question !== '-') return of({ type: 'question', text: question });
  if (question === '' && stdin.isTTY === true) return of(json ? missing(noQuestion) : none);
  const onSilence = (): void => {
    if (stdin.isTTY !== true) stderr.write('Waiting for a question on standard input.\n');
  };
  return readQuestion$(stdin, {
    onSilence,
    ...(scheduler === undefined ? {} : { scheduler }),
  }).pipe(
    map((text): GivenQuestion => {
      if (text !== '') return { type: 'question', text };
      return question === '-' ? missing(emptyInput) : none;
    }),
  );
};

const none: GivenQuestion = { type: 'none' };

const missing = (why: string): GivenQuestion => ({ type: 'missing', why });

const noQuestion =
  '--json does not chat: pass a question, as in npx @millrace/cli --json "2 + 2", or pipe one into it.';

const emptyInput =
  'standard input was empty: pipe a question into it, as in echo "2 + 2" | npx @millrace/cli -';
