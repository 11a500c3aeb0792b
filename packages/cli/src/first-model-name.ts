/** How long an endpoint has to tell its models, in milliseconds. */
const patience = 3_000;

/**
 * Asks an endpoint for the models that it has, and gives the name of the first that can talk: what a server on one's own
 * machine calls its model, nobody can know. Resolves to nothing where it does not tell.
 */
export const firstModelName = async (
  baseUrl: string,
  apiKey: string | undefined,
): Promise<string | undefined> => {
  try {
    const response = await fetch(`${baseUrl.replace(/\/+$/, '')}/models`, {
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      redirect: 'error',
      signal: AbortSignal.timeout(patience),
    });
    return nameIn(await response.json());
  } catch {
    return undefined;
  }
};

const nameIn = (body: unknown): string | undefined => {
  const list: unknown = Reflect.get(Object(body), 'data');
  const models: readonly unknown[] = Array.isArray(list) ? list : [];
  return models
    .map((model): unknown => Reflect.get(Object(model), 'id'))
    .filter((name) => typeof name === 'string')
    .find((name) => name !== '' && !isMute.test(name));
};

/** The names of models that do something else than talk. */
const isMute = /embed|rerank|whisper|tts|moderation|dall-e|diffusion/i;
