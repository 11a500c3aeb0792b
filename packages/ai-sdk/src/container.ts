import type { ModelRequest } from 'millrace';
import type { ProviderOptions } from './provider-types.js';

/**
 * The options of the provider for a request with results of tools. Code of Anthropic that called these tools waits in a container, and
 * a request that does not name it is rejected. Options of your own take precedence.
 */
export const withContainer = (
  provider: string,
  { messages }: Pick<ModelRequest, 'messages'>,
  own: ProviderOptions | undefined,
): ProviderOptions | undefined => {
  if (messages.at(-1)?.role !== 'tool') return own;
  const asking = messages.findLast((it) => it.role === 'assistant')?.vendor;
  const id = asking?.name === provider ? asking.container?.id : undefined;
  return id === undefined
    ? own
    : { ...own, anthropic: { container: { id }, ...own?.['anthropic'] } };
};
