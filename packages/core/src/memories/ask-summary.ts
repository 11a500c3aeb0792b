import { catchError, concatMap, defer, identity, map, type Observable, of } from 'rxjs';
import { createDraft } from '../draft.js';
import { messageOf } from '../errors.js';
import { estimateTokens } from '../fitting/estimate-tokens.js';
import type { Hooks } from '../hooks.js';
import { type Message, textBlock, textOf } from '../message.js';
import type { Finish, ModelRequest } from '../model.js';
import { receive$ } from '../receive.js';
import type { OpenRun } from '../run.js';
import { addUsage, noUsage, type Usage } from '../usage.js';
import { entry, transcriptOf } from './transcript.js';

export type Summary =
  | { readonly status: 'made'; readonly text: string; readonly usage: Usage }
  | { readonly status: 'failed'; readonly why: string; readonly usage: Usage };

export interface SummaryOrder {
  /** The summary of what was before the messages. */
  readonly former: string | undefined;
  readonly messages: readonly Message[];
  readonly prompt: string;
  /** Tokens that it may have. */
  readonly maxTokens: number;
  /** Tokens, as estimated, that one request may show: what is longer is summarised in several, each with the summary before it. */
  readonly portionTokens: number;
}

type Needs = Parameters<typeof receive$>[0];

/**
 * Asks the model for a summary, and emits what came of it: a failure is a value, too. Nothing of it is shown, and an interrupt ends it without a
 * value. `position` is its place in the call.
 */
export const askSummary$ = (
  context: Needs,
  run: OpenRun,
  position: string,
  { former, messages, prompt, maxTokens, portionTokens }: SummaryOrder,
): Observable<Summary> => {
  const unheard = { ...context, hooks: unheardHooks(context.hooks) };
  const begun: Summary = { status: 'made', text: former ?? '', usage: noUsage };
  return portionsOf(transcriptOf(messages), portionTokens).reduce<Observable<Summary>>(
    (before$, portion, index) =>
      before$.pipe(
        concatMap((before) => {
          if (before.status === 'failed') return of(before);
          const stepId = `${context.call.callId}/${position}${index === 0 ? '' : `/${index}`}`;
          const request = { system: prompt, messages: [material(stepId, before.text, portion)] };
          return write$(unheard, run, stepId, { ...request, maxTokens }).pipe(
            map((made) => ({ ...made, usage: addUsage(before.usage, made.usage) })),
          );
        }),
      ),
    of(begun),
  );
};

const write$ = (
  context: Needs,
  run: OpenRun,
  stepId: string,
  { messages, ...options }: ModelRequest,
): Observable<Summary> =>
  defer(() => {
    const { iteration } = run;
    const draft = createDraft({ messageId: stepId, name: '', iteration, isTaken: () => false });
    return receive$(context, run, () => undefined, { messages, options }, draft).pipe(
      map((finish) => read(textOf(draft.message()).trim(), finish, draft.usage)),
      catchError((error: unknown) =>
        of<Summary>({ status: 'failed', why: messageOf(error), usage: draft.usage }),
      ),
    );
  });

const read = (text: string, finish: Finish, usage: Usage): Summary => {
  if (finish === 'refusal' || finish === 'filtered') {
    return { status: 'failed', why: 'The model would not write it.', usage };
  }
  return text === ''
    ? { status: 'failed', why: 'The model wrote nothing.', usage }
    : { status: 'made', text, usage };
};

const material = (stepId: string, former: string, portion: string): Message => ({
  id: `${stepId}/material`,
  role: 'user',
  content: [
    textBlock(
      `${former === '' ? '' : entry('summary so far', former)}${portion}\nThat was the material. Write the summary now.`,
    ),
  ],
});

const portionsOf = (entries: readonly string[], portionTokens: number): readonly string[] => {
  const portions: { text: string; tokens: number }[] = [];
  for (const text of entries) {
    const tokens = estimateTokens(text);
    const last = portions.at(-1);
    if (last === undefined || last.tokens + tokens > portionTokens) portions.push({ text, tokens });
    else {
      last.text += text;
      last.tokens += tokens;
    }
  }
  return portions.map(({ text }) => text);
};

/** Reports, such as that of a retry, are heard; what is written is not for those who listen. */
const unheardHooks = (hooks: Hooks): Hooks => ({
  ...hooks,
  transformed: () => identity,
  report: (iteration, payload) => {
    if (payload.type !== 'messageDiscarded') hooks.report(iteration, payload);
  },
});
