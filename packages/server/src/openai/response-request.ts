import type { CallOptions } from 'millrace';
import { isRecord } from 'millrace/values';
import { fieldOf, idOf } from '../inbound.js';
import type { AskedFor } from './asked-for.js';
import type { Decision } from './decisions.js';
import { type Conversation, conversationOf, entriesOfInput } from './messages.js';
import { refuse } from './refusals.js';
import { refOf, type ResponseRef, responseIdOf } from './response-ids.js';
import { flagIn, type Served, settingsOf } from './settings.js';

export interface ResponseRequest {
  readonly request: CallOptions['request'];
  readonly isStream: boolean;
  readonly isStored: boolean;
  readonly isBackground: boolean;
  /** The response that this one continues. */
  readonly previous: ResponseRef | undefined;
  readonly conversation: string | undefined;
  readonly messages: Conversation;
  /** The decisions on approval requests that the input consists of. */
  readonly decisions: readonly Decision[];
  readonly asked: AskedFor;
}

/** Reads a request for a response. Throws the error for the client if it is not valid. */
export const readRequest = (body: unknown, served: Served): ResponseRequest => {
  const format = fieldOf(fieldOf(body, 'text'), 'format') ?? undefined;
  const { request, isStream, ...asks } = settingsOf(body, served, {
    maxTokens: ['max_output_tokens'],
    functionOf: (tool) => tool,
    form: {
      param: 'text.format',
      type: fieldOf(format, 'type') ?? undefined,
      schema: fieldOf(format, 'schema'),
    },
  });
  if (fieldOf(body, 'prompt') != null) throw refuse("'prompt' is not supported.", 'prompt');
  const place = placeIn(body);
  const { isStored, isBackground, previous } = place;
  const continues = previous !== undefined || place.conversation !== undefined;
  const items = fieldOf(body, 'input');
  const decisions = served.approvals?.decisionsIn(items, continues) ?? [];
  const messages =
    decisions.length > 0
      ? noMessages
      : conversationOf(entriesOfInput(items, served.parts), continues);
  const given = fieldOf(body, 'instructions') ?? undefined;
  if (given !== undefined && typeof given !== 'string') {
    throw refuse("'instructions' must be a string.", 'instructions');
  }
  const instructions = [given, messages.instructions].filter((it) => it !== undefined);
  const asked: AskedFor = {
    ...asks,
    ...(instructions.length > 0 && { instructions: instructions.join('\n\n') }),
    // A decision continues its call, which keeps its settings.
    ...(decisions.length === 0 && {
      repeated: {
        background: isBackground,
        instructions: given ?? null,
        max_output_tokens: asks.maxTokens ?? null,
        metadata: metadataIn(body),
        previous_response_id: previous === undefined ? null : responseIdOf(previous),
        store: isStored,
        temperature: request.temperature ?? null,
        text: { format: format ?? { type: 'text' } },
        tool_choice: fieldOf(body, 'tool_choice') ?? 'auto',
        tools: fieldOf(body, 'tools') ?? [],
      },
    }),
  };
  return { request, isStream, messages, decisions, asked, ...place };
};

/** The place of a response among others: the one that it continues, and whether it can be continued. */
const placeIn = (body: unknown) => {
  const isStored = flagIn(body, 'store', true);
  const isBackground = flagIn(body, 'background');
  const previous = previousIn(body);
  const conversation = conversationIn(body);
  if (previous !== undefined && conversation !== undefined) {
    throw refuse("Pass 'previous_response_id' or 'conversation', not both.", 'conversation');
  }
  const continues = previous !== undefined || conversation !== undefined;
  if (!isStored && (continues || isBackground)) {
    throw refuse(
      "Without 'store', a response can neither be continued nor run in the background.",
      'store',
    );
  }
  return { isStored, isBackground, previous, conversation };
};

const noMessages: Conversation = { instructions: undefined, messages: [], input: [], history: [] };

const previousIn = (body: unknown): ResponseRef | undefined => {
  const id = fieldOf(body, 'previous_response_id') ?? undefined;
  return id === undefined ? undefined : refOf(id, 'previous_response_id');
};

const conversationIn = (body: unknown): string | undefined => {
  const given = fieldOf(body, 'conversation') ?? undefined;
  const id = isRecord(given) ? fieldOf(given, 'id') : given;
  if (id === undefined) return undefined;
  try {
    return idOf(id, 'conversation');
  } catch {
    throw refuse("'conversation' must be an id, or an object with one.", 'conversation');
  }
};

const metadataIn = (body: unknown): object => {
  const metadata = fieldOf(body, 'metadata') ?? {};
  const entries = isRecord(metadata) ? Object.entries(metadata) : [];
  const isRight = entries.length <= 16 && entries.every(([, value]) => typeof value === 'string');
  if (isRecord(metadata) && isRight) return metadata;
  throw refuse("'metadata' must be an object of up to 16 strings.", 'metadata');
};
