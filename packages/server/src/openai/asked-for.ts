import { type Layer, output, textOf } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { type ClientTool, clientTools, unchecked, withInstructions } from '../client-tools.js';

/** The settings of a request in addition to its messages. They are kept in the metadata of its call, so a resumed call has them as well. */
export interface AskedFor {
  /** Added to the instructions of the agent. */
  readonly instructions?: string;
  /** Tools that the client runs. */
  readonly tools?: readonly ClientTool[];
  /** The JSON Schema of the answer. */
  readonly format?: Readonly<Record<string, unknown>>;
  /** The maximum number of tokens of an answer. The agent may allow fewer. */
  readonly maxTokens?: number;
  /** Fields that the response echoes from the request. */
  readonly repeated?: Readonly<Record<string, unknown>>;
}

declare module 'millrace' {
  interface Events {
    /** The settings of the request, recorded for later readers of the call. */
    readonly openAiRequest: { readonly asked: AskedFor };
  }
}

const key = 'openai';

export const metadataOf = (asked: AskedFor): Readonly<Record<string, string>> => ({
  [key]: JSON.stringify(asked),
});

/** The settings of the request of a call; `undefined` if it used another protocol. */
export const askedForIn = (metadata: Readonly<Record<string, string>>): AskedFor | undefined => {
  const text = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
  const asked: unknown = text === undefined ? undefined : parsedJson(text);
  return isAskedFor(asked) ? asked : undefined;
};

/** Only this file writes this metadata, so its shape needs no further checks. */
const isAskedFor = (value: unknown): value is AskedFor => isRecord(value);

/** Layers that apply the settings of a request to its call. */
export const askedForLayers: readonly Layer[] = [
  clientTools('openAiTools', (metadata) => askedForIn(metadata)?.tools ?? []),
  {
    name: 'openAiRequest',
    // Runs within `prepare`, which may edit the options, and `conversation`, which sets the instructions of the agent.
    priority: 61,
    call: (context) => (next) => (call) => {
      const asked = askedForIn(context.info.metadata);
      if (asked?.repeated !== undefined) context.hooks.report(0, { type: 'openAiRequest', asked });
      const { instructions, maxTokens = Infinity } = asked ?? {};
      const { options } = call;
      const { request } = options;
      const limited =
        maxTokens < (request?.maxTokens ?? Infinity)
          ? { ...call, options: { ...options, request: { ...request, maxTokens } } }
          : call;
      return next(instructions === undefined ? limited : withInstructions(limited, instructions));
    },
  },
  {
    name: 'openAiFormat',
    // The priority of `output`.
    priority: -Number.MAX_VALUE,
    call: (context) => (next) => (call) => {
      const { format } = askedForIn(context.info.metadata) ?? {};
      if (format === undefined) return next(call);
      return output(unchecked(format)).call?.(context)(next)(call) ?? next(call);
    },
    // The phases are the same for every `output`: they read the schema from the call.
    turn: (phases) => output(unchecked({})).turn?.(phases) ?? phases,
  },
];

/** The text of an answer. Structured output is returned as JSON alone, without the text around it. */
export const answerText = (
  reply: Parameters<typeof textOf>[0] & { readonly output?: unknown },
  { format }: AskedFor,
): string =>
  format === undefined || reply.output === undefined ? textOf(reply) : JSON.stringify(reply.output);
