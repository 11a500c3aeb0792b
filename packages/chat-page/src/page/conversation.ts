import {
  BehaviorSubject,
  catchError,
  concat,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  type OperatorFunction,
  startWith,
  Subject,
  switchMap,
  tap,
} from 'rxjs';
import { type Followed, type History, Refusal, type Server } from './server.js';
import {
  isToolCall,
  type UiMessage,
  type UiPart,
  waitingIn,
  withChunk,
  withStart,
} from './ui-message.js';

/** A conversation, as the page shows it. */
export interface Conversation {
  readonly id: string;
  /** `answering` from a question to the end of its answer. */
  readonly status: 'loading' | 'ready' | 'answering';
  /** The connection was lost, and is tried again. */
  readonly isReconnecting: boolean;
  readonly messages: readonly UiMessage[];
  /** Messages for the running answer that it has not taken yet. */
  readonly steering: readonly string[];
  /** Why the last request has failed, and the command that tries it again. */
  readonly problem?: { readonly text: string; readonly retry?: Command };
}

/** An action of the user. */
export type Command =
  | { readonly type: 'ask'; readonly parts: readonly UiPart[]; readonly id?: string }
  /** Generates an answer again, and removes all after it. */
  | { readonly type: 'regenerate'; readonly messageId: string }
  /** Replaces the text of a question, and removes all after it. */
  | { readonly type: 'edit'; readonly messageId: string; readonly text: string }
  /** The result of a suspended tool call, or the reason for its failure. */
  | { readonly type: 'result'; readonly toolCallId: string; readonly output: unknown }
  | { readonly type: 'failure'; readonly toolCallId: string; readonly errorText: string }
  | { readonly type: 'load' }
  | { readonly type: 'stop' }
  | { readonly type: 'steer'; readonly text: string };

type Update = (state: Conversation) => Conversation;

const set =
  (change: Partial<Conversation>): Update =>
  (state) => ({ ...state, ...change });

/**
 * Loads a conversation, joins its running answer, and performs commands. Emits each state, many a second while an answer
 * arrives. Never completes or errors: failures are a `problem`. Cold.
 */
export const conversation$ = (
  id: string,
  { server, newId }: { readonly server: Server; readonly newId: () => string },
  command$: Observable<Command>,
): Observable<Conversation> =>
  defer(() => {
    const state$ = new BehaviorSubject<Conversation>({
      ...{ id, status: 'loading', isReconnecting: false, messages: [], steering: [] },
    });
    const own$ = new Subject<Command>();
    const all$ = merge(command$, own$);

    /** Loads the history, and joins the running answer. A question that it lacks is kept, to be sent again. */
    const load$ = (asked?: Asked): Observable<Update> =>
      defer(() => server.history$(id)).pipe(
        mergeMap(({ messages, isRunning }: History) =>
          asked !== undefined && messages.length < state$.value.messages.length
            ? of(set({ messages: [...messages, asked.question], problem: asked.lost }))
            : concat(
                of(set({ messages, isReconnecting: false })),
                isRunning ? answer$(() => server.join$(id)) : of(set({ status: 'ready' })),
              ),
        ),
      );
    /** Follows an answer to its end. */
    const answer$ = (open$: () => Observable<Followed>, asked?: Asked): Observable<Update> =>
      concat(
        of(cleared({ status: 'answering' })),
        defer(open$).pipe(
          switchMap((it): Observable<Update> => {
            switch (it.type) {
              case 'chunk':
                return of(chunkUpdate(it.chunk));
              case 'lost':
                return of(set({ isReconnecting: true }));
              case 'back':
                return of(set({ isReconnecting: false }));
              case 'gone':
                return load$(asked);
            }
          }),
        ),
        of(set({ status: 'ready', isReconnecting: false })),
      );
    const send$ = (messages: readonly UiMessage[], body: object, asked?: Asked) =>
      concat(
        of(set({ messages })),
        answer$(() => server.ask$(id, body), asked),
      );

    const perform$ = (command: Command): Observable<Update> => {
      const { messages } = state$.value;
      switch (command.type) {
        case 'load':
          return load$();
        case 'ask': {
          const { parts, id: sent = newId() } = command;
          const question: UiMessage = { id: sent, role: 'user', parts };
          const lost = { text: lostQuestion, retry: { ...command, id: sent } };
          const others = messages.filter((message) => message.id !== sent);
          const body = { messages: [requestOf(question)] };
          return send$([...others, question], body, { question, lost });
        }
        case 'regenerate': {
          const at = messages.findIndex((message) => message.id === command.messageId);
          const upTo = messages[at]?.role === 'user' ? at + 1 : at;
          const kept = messages.slice(0, upTo);
          const { messageId } = command;
          return send$(kept, { ...placeOf(kept), trigger: 'regenerate-message', messageId });
        }
        case 'edit': {
          const at = messages.findIndex((message) => message.id === command.messageId);
          const question = messages[at];
          if (question === undefined) return EMPTY;
          const kept = [...messages.slice(0, at), withText(question, command.text)];
          return send$(kept, { ...placeOf(kept), messageId: question.id });
        }
        case 'result':
        case 'failure': {
          const answered = messages.map((message) => withResult(message, command));
          const last = answered.at(-1);
          if (last === undefined || waitingIn(last).length > 0)
            return of(set({ messages: answered }));
          return send$(answered, { messages: [requestOf(last)] });
        }
        default:
          return EMPTY;
      }
    };
    const beside$ = (command: Command): Observable<Update> => {
      if (command.type !== 'steer') return EMPTY;
      const { text } = command;
      return concat(
        of(steering((waiting) => [...waiting, text])),
        server.steer$(id, text).pipe(
          tap((isDelivered) => {
            if (!isDelivered) own$.next({ type: 'ask', parts: [textPart(text)] });
          }),
          map(() => steering((waiting) => waiting.filter((_, at) => at !== waiting.indexOf(text)))),
          refusals(steering((waiting) => waiting.filter((it) => it !== text))),
        ),
      );
    };

    return merge(
      all$.pipe(
        filter(({ type }) => type !== 'stop' && type !== 'steer'),
        startWith<Command>({ type: 'load' }),
        switchMap((command) =>
          perform$(command).pipe(
            catchError((error: unknown) => {
              const retry = retryOf(command, state$.value.messages);
              const problem = { ...problemOf(error), ...(retry && { retry }) };
              const failed = set({ status: 'ready', isReconnecting: false, problem });
              const isStale = error instanceof Refusal && error.status === 409;
              return isStale
                ? concat(load$(), of(set({ problem: problemOf(error) }))).pipe(
                    catchError(() => of(failed)),
                  )
                : of(failed);
            }),
          ),
        ),
      ),
      all$.pipe(mergeMap(beside$)),
      all$.pipe(
        filter(({ type }) => type === 'stop'),
        exhaustMap(() => server.stop$(id).pipe(refusals())),
      ),
    ).pipe(
      map((update) => update(state$.value)),
      tap(state$),
      startWith(state$.value),
    );
  });

const lostQuestion = 'The server does not have your message.';

/** A question that was sent, and the problem if it is lost. */
interface Asked {
  readonly question: UiMessage;
  readonly lost: NonNullable<Conversation['problem']>;
}

/** A question that was refused is in the list already: it is sent again under its id. */
const retryOf = (command: Command, messages: readonly UiMessage[]): Command | undefined => {
  if (command.type === 'load') return command;
  const last = messages.at(-1);
  return command.type === 'ask' && last?.role === 'user' ? { ...command, id: last.id } : undefined;
};

/** Sets the state, and forgets the last problem. */
const cleared =
  (change: Partial<Conversation>): Update =>
  ({ problem: _, ...state }) => ({ ...state, ...change });

const steering =
  (change: (waiting: readonly string[]) => readonly string[]): Update =>
  (state) => ({ ...state, steering: change(state.steering) });

const problemOf = (error: unknown): { readonly text: string } => ({
  text: error instanceof Refusal ? error.message : 'The server cannot be reached.',
});

const refusals = (also: Update = (state) => state): OperatorFunction<Update, Update> =>
  catchError((error: unknown) => of(also, set({ problem: problemOf(error) })));

const chunkUpdate =
  (chunk: { readonly type: string; readonly messageId?: unknown }): Update =>
  (state) => {
    const { messages } = state;
    if (chunk.type === 'start') {
      return typeof chunk.messageId === 'string'
        ? { ...state, messages: withStart(messages, chunk.messageId) }
        : state;
    }
    const last = messages.at(-1);
    return last?.role === 'assistant'
      ? { ...state, messages: messages.with(-1, withChunk(last, chunk)) }
      : state;
  };

// ---------------------------------------------------------------- requests

export const textPart = (text: string): UiPart => ({ type: 'text', text, isOpen: false });

const withText = (message: UiMessage, text: string): UiMessage => ({
  ...message,
  parts: [textPart(text), ...message.parts.filter(({ type }) => type === 'file')],
});

/** The messages that mark the cut in the conversation: the last answer before the question, and the question. */
const placeOf = (kept: readonly UiMessage[]): { readonly messages: readonly object[] } => {
  const answer = kept.findLast(({ role }) => role === 'assistant');
  const before = answer === undefined ? [] : [{ ...answer, parts: [] }];
  return { messages: [...before, ...kept.slice(-1).map(requestOf)] };
};

const withResult = (
  message: UiMessage,
  command: Extract<Command, { type: 'result' | 'failure' }>,
): UiMessage => ({
  ...message,
  parts: message.parts.map((part) =>
    !isToolCall(command.toolCallId)(part)
      ? part
      : command.type === 'result'
        ? { ...part, state: 'done', output: command.output }
        : { ...part, state: 'failed', errorText: command.errorText },
  ),
});

/** A message in the protocol of the AI SDK. */
const requestOf = ({ id, role, parts }: UiMessage): object => ({
  ...{ id, role },
  parts: parts.flatMap((part): readonly object[] => {
    switch (part.type) {
      case 'text':
        return [{ type: 'text', text: part.text }];
      case 'file':
      case 'step-start':
        return [part];
      case 'suspended':
        return [{ type: 'data-suspended', id: part.data.toolCallId, data: part.data }];
      case 'tool': {
        const { toolName, toolCallId, input, output, errorText } = part;
        const state = part.state === 'done' ? 'output-available' : 'output-error';
        return part.state === 'done' || part.state === 'failed'
          ? [{ type: `tool-${toolName}`, toolCallId, state, input, output, errorText }]
          : [];
      }
      default:
        return [];
    }
  }),
});
