import type { AiSdkCallOptions, AiSdkLanguageModel } from './index.js';

/** A model of the provider interface that plays parts, and keeps what it was asked. */
export interface PlayedModel extends AiSdkLanguageModel {
  readonly asked: AiSdkCallOptions[];
  /** How many parts were read, and how many streams were cancelled. */
  readonly counts: { pulled: number; cancelled: number };
}

export interface Played {
  readonly version?: 'v3' | 'v4';
  readonly supportedUrls?: Readonly<Record<string, readonly RegExp[]>>;
  /** Keeps the stream open after its parts. */
  readonly holds?: boolean;
}

/** One list of parts for each request; the last one repeats. An `Error` in a list breaks the stream there. */
export const playParts = (
  lists: readonly (readonly unknown[])[],
  { version = 'v3', supportedUrls = {}, holds = false }: Played = {},
): PlayedModel => {
  const asked: AiSdkCallOptions[] = [];
  const counts = { pulled: 0, cancelled: 0 };
  return {
    ...{ specificationVersion: version, provider: 'acme.chat', modelId: 'acme-1', supportedUrls },
    ...{ asked, counts },
    doStream: (options) => {
      const list = lists[Math.min(asked.push(options), lists.length) - 1] ?? [];
      let index = 0;
      const stream = new ReadableStream<unknown>(
        {
          pull: (controller) => {
            const part = list[index++];
            if (part instanceof Error) controller.error(part);
            else if (part !== undefined) {
              counts.pulled += 1;
              controller.enqueue(part);
            } else if (holds) return new Promise(() => undefined);
            else controller.close();
            return undefined;
          },
          cancel: () => {
            counts.cancelled += 1;
          },
        },
        { highWaterMark: 0 },
      );
      return Promise.resolve({ stream });
    },
  };
};

export const text = (id: string, ...deltas: readonly string[]): readonly unknown[] => [
  { type: 'text-start', id },
  ...deltas.map((delta) => ({ type: 'text-delta', id, delta })),
  { type: 'text-end', id },
];

export const call = (toolCallId: string, toolName: string, input: string, more = {}): unknown => ({
  ...{ type: 'tool-call', toolCallId, toolName, input },
  ...more,
});

export const preview = (id: string, toolName: string, ...deltas: readonly string[]) => [
  { type: 'tool-input-start', id, toolName },
  ...deltas.map((delta) => ({ type: 'tool-input-delta', id, delta })),
  { type: 'tool-input-end', id },
];

export const usage = {
  inputTokens: { total: 10, noCache: 6, cacheRead: 3, cacheWrite: 1 },
  outputTokens: { total: 5, text: 3, reasoning: 2 },
};

export const finish = (unified = 'stop', raw: string | undefined = unified): unknown => ({
  ...{ type: 'finish', usage },
  finishReason: { unified, raw },
});
