import { PROTOCOL_VERSION } from '@ag-ui/core';
import { checkOptions } from 'millrace/values';
import { concat, concatMap, type Observable, skip } from 'rxjs';
import {
  type AgUiInput,
  inputOfAgUi,
  placeOfAgUi,
  verdictsOfAgUi,
  asksInstead,
  withoutCancelled,
} from './input-of-ag-ui.js';
import { agUiEvents } from './to-ag-ui.js';
import { metadataOf, wishes } from './wishes.js';
import { namesOf } from '../client-tools.js';
import { fieldOf, idOf, type PartOptions } from '../inbound.js';
import { agUiHeaders } from '../responses.js';
import { asked, decidedStream$, joining$ } from '../chat/continuing.js';
import { type AgUiMessage, toAgUiMessages } from '../chat/history.js';
import { type ChatProtocol, isPath, type StreamFormat, type Visit } from '../chat/protocol.js';

export { agUiState } from './wishes.js';

type Run = Pick<AgUiInput, 'threadId' | 'runId' | 'clientResults'>;

const runOf = (body: unknown): Run => ({
  threadId: idOf(fieldOf(body, 'threadId'), 'threadId'),
  runId: idOf(fieldOf(body, 'runId'), 'runId'),
});

/**
 * Serves clients of AG-UI 1.0: `chatServer(agent, { protocols: [agUi()] })`. `POST` to the `path` runs the agent, and `POST`
 * to `connect` below it sends the messages of a conversation and the rest of its running answer. The `tools` of a request are
 * added to its call, and suspend; its `context` and its `state` are added to the instructions. Default path: `/api/ag-ui`.
 */
export const agUi = (options: { readonly path?: string | undefined } = {}): ChatProtocol => {
  checkOptions('agUi()', options, { path: isPath });
  const { path = '/api/ag-ui' } = options;
  const protocol: ChatProtocol = ({ agent, approvals, masks, parts }) => {
    const taken = new Set(namesOf(agent.tools));
    const formatFor =
      (visit: Visit): FormatFor =>
      (run, answered) => ({
        headers: agUiHeaders,
        encode$: agUiEvents({ ...masks, ...asked(visit, approvals, answered), ...run }),
        isRest: answered !== undefined,
      });
    return [
      {
        method: 'POST',
        path,
        answer$: (visit) =>
          visit.body$.pipe(
            concatMap((body) => asked$(visit, formatFor(visit), body, { parts, taken })),
          ),
      },
      {
        method: 'POST',
        path: `${path}/connect`,
        answer$: (visit) =>
          visit.body$.pipe(concatMap((body) => connected$(visit, formatFor(visit), body))),
      },
    ];
  };
  return Object.assign(protocol, { use: () => wishes });
};

/** The format of a stream for a run, whose client may have answered approvals. */
type FormatFor = (run: Run, answered?: readonly string[]) => StreamFormat;

const asked$ = (
  { chat }: Visit,
  formatFor: FormatFor,
  body: unknown,
  { parts, taken }: { readonly parts: PartOptions; readonly taken: ReadonlySet<string> },
): Observable<Response> => {
  const verdicts = asksInstead(body) ? [] : verdictsOfAgUi(body);
  if (verdicts.length > 0) {
    const run = runOf(body);
    return decidedStream$(chat(run.threadId), verdicts, (answered) => formatFor(run, answered));
  }
  const { input, ...run } = inputOfAgUi(withoutCancelled(body), parts);
  const { start$, stream$ } = chat(run.threadId);
  const { runId } = run;
  const metadata = metadataOf(body, taken);
  return start$({ input, ...placeOfAgUi(body), runId, metadata }).pipe(
    concatMap((callId) => stream$(callId, formatFor(run))),
  );
};

/** The messages of a conversation, then the rest of its running call. */
const connected$ = ({ chat }: Visit, formatFor: FormatFor, body: unknown): Observable<Response> => {
  const run = runOf(body);
  const joined = chat(run.threadId);
  return joined.history$().pipe(
    concatMap(({ messages, running }) => {
      const begin = [
        { type: 'RUN_STARTED', ...run, protocolVersion: PROTOCOL_VERSION },
        ...snapshots(toAgUiMessages(messages), body),
      ];
      if (running === undefined) {
        const end = { type: 'RUN_FINISHED', ...run, outcome: { type: 'success' } };
        return [new Response(linesOf([...begin, end]), { headers: agUiHeaders })];
      }
      return joining$(joined, running, ({ clientResults }) => {
        const rest = formatFor({ ...run, ...(clientResults && { clientResults }) });
        return {
          ...rest,
          encode$: (event$) => concat(begin, event$.pipe(rest.encode$, skip(1))),
        };
      });
    }),
  );
};

/**
 * When a client applies a snapshot, it keeps the order of its messages, and keeps thoughts that the snapshot does not
 * contain: those of a failed attempt, and those that the stream will repeat. If its messages are not the first ones of the
 * conversation, a first snapshot with only an empty thought removes them. The first message then replaces that thought,
 * whose id it has.
 */
const snapshots = (messages: readonly AgUiMessage[], body: unknown): readonly object[] => {
  const type = 'MESSAGES_SNAPSHOT';
  const known = fieldOf(body, 'messages');
  const isBegin =
    !Array.isArray(known) || known.every((it, at) => fieldOf(it, 'id') === messages[at]?.id);
  const empty = messages.slice(0, 1).map(({ id }) => ({ id, role: 'reasoning', content: '' }));
  return [...(isBegin ? [] : [{ type, messages: empty }]), { type, messages }];
};

const linesOf = (events: readonly object[]): string =>
  events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
