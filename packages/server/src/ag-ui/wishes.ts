import type { CallInfo, Layer } from '@millrace/core';
import { isRecord, parsedJson } from '@millrace/core/values';
import {
  type ClientTool,
  clientTools,
  readClientTools,
  withInstructions,
} from '../client-tools.js';
import { badRequest, fieldOf } from '../inbound.js';

/** The wishes of a request beside its messages. They are kept in the metadata of its call, so a resumed one has them, too. */
interface Wishes {
  readonly tools: readonly ClientTool[];
  /** Added to the instructions of the agent; may be empty. */
  readonly context: string;
}

const key = 'agUi';
const maxContext = 100_000;

/** Reads the `tools` and the `context` of a `RunAgentInput`. Throws `invalidRequest` if they cannot be used. */
export const metadataOf = (
  body: unknown,
  taken: ReadonlySet<string>,
): Readonly<Record<string, string>> => {
  const tools = readClientTools(fieldOf(body, 'tools') ?? [], taken);
  if (typeof tools === 'string') throw badRequest(tools);
  const context = contextOf(fieldOf(body, 'context') ?? []);
  if (tools.length === 0 && context === '') return {};
  const wishes: Wishes = { tools, context };
  return { [key]: JSON.stringify(wishes) };
};

const contextOf = (given: unknown): string => {
  if (!Array.isArray(given)) throw badRequest("'context' must be a list");
  const lines = given.map((item) => {
    const description = fieldOf(item, 'description');
    const value = fieldOf(item, 'value');
    if (typeof description === 'string' && typeof value === 'string') {
      return `${description}: ${value}`;
    }
    throw badRequest("'context' must have descriptions and values");
  });
  const text = ['The application of the user says:', ...lines].join('\n');
  if (text.length > maxContext) throw badRequest("'context' is too long");
  return lines.length === 0 ? '' : text;
};

const wishesIn = (metadata: CallInfo['metadata']): Partial<Wishes> => {
  const wishes: unknown = parsedJson(Object.hasOwn(metadata, key) ? (metadata[key] ?? '') : '{}');
  return isWishes(wishes) ? wishes : {};
};

/** Only this file writes it. */
const isWishes = (value: unknown): value is Wishes => isRecord(value);

/** Layers that give each call what its request wanted. */
export const wishes: readonly Layer[] = [
  clientTools('agUiTools', (metadata) => wishesIn(metadata).tools ?? []),
  {
    name: 'agUiContext',
    // Within `conversation`, which sets the instructions of the agent.
    priority: 61,
    call: (context) => (next) => (call) => {
      const added = wishesIn(context.call.metadata).context ?? '';
      return next(added === '' ? call : withInstructions(call, added));
    },
  },
];
