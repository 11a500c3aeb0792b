import type { Model, RequestOptions } from './model.js';
import type { Toolkit } from './toolkit.js';

/** A request with the tools there are just now. */
export const withTools = (
  request: RequestOptions,
  { declarations }: Pick<Toolkit, 'declarations'>,
): RequestOptions => (declarations.length > 0 ? { ...request, tools: declarations } : request);

/**
 * A request for an answer without tools. Some vendors refuse tool blocks in the history of a request that declares no tools, so they
 * stay declared where they can be forbidden.
 */
export const withoutTools = (
  { toolChoice: _toolChoice, ...request }: RequestOptions,
  toolkit: Pick<Toolkit, 'declarations'>,
  { unsupported }: Pick<Model, 'unsupported'>,
): RequestOptions => {
  if (toolkit.declarations.length === 0 || unsupported?.includes('toolChoice') === true) {
    return request;
  }
  return { ...withTools(request, toolkit), toolChoice: 'none' };
};
