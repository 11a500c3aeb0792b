const timeoutMs = 3_000;

/**
 * Lists the models of an endpoint, and resolves to the first chat model: the names on a local server are not known in
 * advance. Resolves to undefined if the endpoint does not list its models.
 */
export const firstModelName = async (
  baseURL: string,
  apiKey: string | undefined,
): Promise<string | undefined> => {
  try {
    const response = await fetch(`${baseURL.replace(/\/+$/, '')}/models`, {
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
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
    .find((name) => name !== '' && !isNonChatModel.test(name));
};

const isNonChatModel = /embed|rerank|whisper|tts|moderation|dall-e|diffusion/i;
