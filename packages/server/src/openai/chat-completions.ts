import type { AgentEvent, Citation, Reply, Suspension, Usage } from 'millrace';
import {
  concatMap,
  defaultIfEmpty,
  defer,
  map,
  type Observable,
  type OperatorFunction,
  reduce,
  takeWhile,
} from 'rxjs';
import type { Route, Visit } from '../chat/protocol.js';
import { fieldOf, isForClient } from '../inbound.js';
import { createMasks, type MaskOptions, type Masks } from '../masks.js';
import { linkOf } from '../parts/source.js';
import { encodedBy, toParts } from '../parts/to-parts.js';
import type { CallEnd, Part, PartOf } from '../parts/part.js';
import { answerText, type AskedFor, metadataOf } from './asked-for.js';
import { conversationOf, entriesOfChat } from './messages.js';
import { callFailure, refusal, refuse, wireError } from './refusals.js';
import {
  costField,
  eventStreamHeaders,
  secondsNow,
  type Served,
  settingsOf,
  shortfallOf,
  tokensOf,
} from './settings.js';

export const chatCompletionRoutes = (
  path: string,
  served: Served,
  masks: MaskOptions,
): readonly Route[] => [
  {
    method: 'POST',
    path: `${path}/chat/completions`,
    answer$: ({ body$, alone$ }: Visit) =>
      body$.pipe(
        concatMap((body) => {
          const { isStream, withUsage, asked, ...call } = readRequest(body, served);
          const format = { model: served.model, asked, masks };
          const streamFormat = {
            headers: eventStreamHeaders,
            encode$: toChunks({ ...format, withUsage }),
            last: '[DONE]',
          };
          return alone$({ ...call, metadata: metadataOf(asked) }).pipe(
            concatMap(({ stream$, follow$ }) =>
              isStream ? stream$(streamFormat) : follow$.pipe(toCompletion(format)),
            ),
          );
        }),
      ),
  },
];

const readRequest = (body: unknown, served: Served) => {
  const form = fieldOf(body, 'response_format') ?? undefined;
  const { request, isStream, ...asks } = settingsOf(body, served, {
    maxTokens: ['max_completion_tokens', 'max_tokens'],
    functionOf: (tool) => fieldOf(tool, 'function'),
    form: {
      param: 'response_format',
      type: fieldOf(form, 'type') ?? undefined,
      schema: fieldOf(fieldOf(form, 'json_schema'), 'schema'),
    },
  });
  if ((fieldOf(body, 'n') ?? 1) !== 1) throw refuse("Only 'n': 1 is supported.", 'n');
  const entries = entriesOfChat(fieldOf(body, 'messages'), served.parts);
  const { instructions, history, input } = conversationOf(entries, false);
  return {
    input,
    history,
    request,
    isStream,
    asked: { ...asks, ...(instructions !== undefined && { instructions }) },
    withUsage: fieldOf(fieldOf(body, 'stream_options'), 'include_usage') === true,
  };
};

interface Format {
  readonly model: string;
  readonly asked: AskedFor;
  readonly masks: MaskOptions;
}

interface ChunkFormat extends Format {
  readonly withUsage: boolean;
}

type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

interface Delta {
  readonly role?: 'assistant';
  readonly content?: string;
  /** The thoughts of the model, in the field that most servers have for them. */
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly object[];
  readonly annotations?: readonly object[];
}

/**
 * Encodes the events of a call as chunks. Text cannot be retracted: if a message is discarded after its text was sent, the
 * stream and the call end with an error.
 */
export const toChunks =
  (format: ChunkFormat) =>
  (event$: Observable<AgentEvent>): Observable<object> =>
    defer(() => {
      const masks = createMasks(format.masks);
      return event$.pipe(
        encodedBy<object>(toParts(masks), chunkEncoder(format, masks)),
        takeWhile((it) => !('error' in it), true),
      );
    });

const chunkEncoder = (
  { model, asked, withUsage }: ChunkFormat,
  masks: Masks,
): ((part: Part) => readonly object[]) => {
  const created = secondsNow();
  const shown = new Set<string>();
  let latest: string | undefined;
  const chunk = (callId: string, rest: object) => ({
    id: idOf(callId),
    object: 'chat.completion.chunk',
    created,
    model,
    ...(withUsage && { usage: null }),
    ...rest,
  });
  const choice = ({ by }: Part, delta: Delta, finish: FinishReason | null = null): object =>
    chunk(by.callId, {
      choices: [{ index: 0, delta, finish_reason: finish, logprobs: null }],
    });
  const textDelta = (part: PartOf<'blockDelta'>): readonly object[] => {
    if (asked.format !== undefined) return [];
    const gap = latest === undefined || latest === part.messageId ? '' : between;
    latest = part.messageId;
    shown.add(part.messageId);
    return [choice(part, { content: gap + part.delta })];
  };
  const ending = (part: PartOf<'callEnd'>): readonly object[] => {
    const { end, usage } = part;
    if (end.status !== 'replied' || isHeld(end.reply)) return [failureIn(end, masks)];
    const text = asked.format === undefined ? '' : answerText(end.reply, asked);
    const calls = toolCallsIn(end.reply);
    return [
      ...(text === '' ? [] : [choice(part, { content: text })]),
      ...calls.map((call, index) => choice(part, { tool_calls: [{ index, ...call }] })),
      choice(part, {}, finishOf(end.reply)),
      ...(withUsage ? [chunk(part.by.callId, { choices: [], usage: usageOf(usage, end) })] : []),
    ];
  };
  return (part) => {
    if (part.by.parentId !== undefined) return [];
    switch (part.type) {
      case 'callStart':
        return [choice(part, { role: 'assistant', content: '' })];
      case 'blockDelta':
        return part.kind === 'text'
          ? textDelta(part)
          : [choice(part, { reasoning_content: part.delta })];
      case 'source': {
        const annotations = [part.citation].flatMap(annotationsOf);
        return annotations.length === 0 ? [] : [choice(part, { annotations })];
      }
      case 'voided':
        return shown.has(part.messageId) ? [failureOf(takenBack, 'message_discarded')] : [];
      case 'callEnd':
        return ending(part);
      default:
        return [];
    }
  };
};

const takenBack = 'The answer was retracted after part of it was sent. Send the request again.';

const failureOf = (message: string, code: string): object => ({
  error: { message, type: 'server_error', param: null, code },
});

/** The error of a call that ends without an answer for its client. */
const failureIn = (end: CallEnd, masks: Masks): object => {
  switch (end.status) {
    case 'aborted':
      return failureOf('The call was cut.', 'aborted');
    case 'failed':
      return { error: wireError(end.error, masks.error(end.error), 500) };
    case 'replied':
      return { error: wireError(held(), held().userMessage, 409) };
  }
};

/** The annotation for a page that is cited; none for other sources. */
const annotationsOf = (citation: Citation): readonly object[] => {
  const url = linkOf(citation);
  const { title = url, start = 0, end = start } = citation;
  return url === undefined
    ? []
    : [{ type: 'url_citation', url_citation: { url, title, start_index: start, end_index: end } }];
};

/** Between the texts of two messages. */
const between = '\n\n';

interface Answer {
  /** The text of each message, by its id. */
  readonly texts: ReadonlyMap<string, string>;
  readonly thoughts: string;
  readonly sources: readonly PartOf<'source'>[];
  readonly end: PartOf<'callEnd'> | undefined;
}

/** Emits the completion of a call, or the response for its error. */
const toCompletion =
  ({ model, asked, masks: hooks }: Format): OperatorFunction<AgentEvent, Response> =>
  (event$) =>
    defer(() => {
      const masks = createMasks(hooks);
      const created = secondsNow();
      return event$.pipe(
        encodedBy(toParts(masks), (part): readonly Part[] =>
          part.by.parentId === undefined ? [part] : [],
        ),
        reduce(withPart, {
          texts: new Map(),
          thoughts: '',
          sources: [],
          end: undefined,
        } satisfies Answer),
        map(({ texts, thoughts, sources, end: last }) => {
          if (last === undefined || last.end.status === 'aborted') return cut();
          const { end, by, usage } = last;
          if (end.status === 'failed') return callFailure(end.error, masks.error(end.error));
          if (isHeld(end.reply)) return refusal(held(), 409);
          const text = [...texts.values()].join(between);
          const calls = toolCallsIn(end.reply);
          const content = asked.format === undefined ? text : answerText(end.reply, asked);
          const message = {
            role: 'assistant',
            content: content === '' && calls.length > 0 ? null : content,
            refusal: null,
            annotations: sources.flatMap(({ citation }) => annotationsOf(citation)),
            ...(calls.length > 0 && { tool_calls: calls }),
            ...(thoughts !== '' && { reasoning_content: thoughts }),
          } as const;
          return Response.json({
            id: idOf(by.callId),
            object: 'chat.completion',
            created,
            model,
            choices: [{ index: 0, message, finish_reason: finishOf(end.reply), logprobs: null }],
            usage: usageOf(usage, last.end),
          });
        }),
        defaultIfEmpty(cut()),
      );
    });

/** The response to a client that has left. */
const cut = (): Response => new Response(null, { status: 499 });

const withPart = (answer: Answer, part: Part): Answer => {
  const { texts, thoughts } = answer;
  switch (part.type) {
    case 'blockDelta': {
      if (part.kind === 'thinking') return { ...answer, thoughts: thoughts + part.delta };
      const { messageId, delta } = part;
      return {
        ...answer,
        texts: new Map(texts).set(messageId, (texts.get(messageId) ?? '') + delta),
      };
    }
    case 'source':
      return { ...answer, sources: [...answer.sources, part] };
    case 'voided':
      return {
        ...answer,
        sources: answer.sources.filter(({ messageId }) => messageId !== part.messageId),
        texts: new Map([...texts].filter(([messageId]) => messageId !== part.messageId)),
      };
    case 'callEnd':
      return { ...answer, end: part };
    default:
      return answer;
  }
};

/** The tool calls that the client answers. Tool calls of the server are not shown. */
const toolCallsIn = ({ suspensions = [] }: Reply) =>
  suspensions.filter(isForCompletion).map(
    ({ toolCall: { id, name, input, invalidInput } }) =>
      ({
        id,
        type: 'function',
        function: { name, arguments: invalidInput ?? JSON.stringify(input) },
      }) as const,
  );

/** Excludes suspended tool calls with vendor data: a chat completion cannot return that data in the next request. */
const isForCompletion = (suspension: Suspension): boolean => {
  const { suspends, vendorData } = suspension.toolCall;
  return isForClient(suspension) && (suspends === undefined || vendorData === undefined);
};

/** Whether the call waits only for results that the client cannot bring. */
const isHeld = ({ reason, suspensions = [] }: Reply): boolean =>
  reason === 'suspended' && !suspensions.some(isForCompletion);

const held = () =>
  refuse(
    'The answer waits for a decision that a client cannot bring. Ask with the Responses API, which keeps the conversation.',
    'messages',
    'conflict',
    409,
  );

const finishOf = (reply: Reply): FinishReason =>
  reply.reason === 'suspended' ? 'tool_calls' : (shortfallOf(reply) ?? 'stop');

const usageOf = (usage: Usage, end: CallEnd): object => {
  const { input, output, total, cached } = tokensOf(usage);
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: total,
    prompt_tokens_details: { cached_tokens: cached },
    ...costField(end),
  };
};

const idOf = (callId: string): string => `chatcmpl-${callId}`;
