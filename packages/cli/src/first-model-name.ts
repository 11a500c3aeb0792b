/** How long an endpoint has to tell its models, in milliseconds. */
const patience = 3_000;

/**
 * Asks an endpoint for the models that it has, and gives the name of the first: what a server on one's own machine calls its
 * model, nobody can know. Resolves to nothing where it does not tell.
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
  const first: unknown = Array.isArray(list) ? list[0] : undefined;
  const name: unknown = Reflect.get(Object(first), 'id');
  return typeof name === 'string' && name !== '' ? name : undefined;
};
