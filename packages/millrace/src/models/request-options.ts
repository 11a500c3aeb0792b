import type { Model, ModelReport, RequestOptions, ToolDeclaration } from './model.js';

export const dropWarning = ({ name }: Pick<Model, 'name'>, option: string): ModelReport => ({
  type: 'warning',
  message: `The model '${name}' does not support '${option}'. The option was dropped.`,
});

/** Splits the options of a request into supported ones and the names of unsupported ones. */
export const supportedOptions = (
  { unsupported = [] }: Pick<Model, 'unsupported'>,
  options: RequestOptions,
): { readonly options: RequestOptions; readonly dropped: readonly string[] } => {
  const dropped = unsupported.filter((name) => options[name] !== undefined);
  if (dropped.length === 0) return { options, dropped };
  const kept = Object.entries(options).filter(([name]) => !dropped.some((it) => it === name));
  return { options: Object.fromEntries(kept), dropped };
};

export const withTools = (
  request: RequestOptions,
  { declarations }: { readonly declarations: readonly ToolDeclaration[] },
): RequestOptions => (declarations.length > 0 ? { ...request, tools: declarations } : request);

/** A request without tools. They stay declared if they can be forbidden: some vendors reject tool blocks otherwise. */
export const withoutTools = (
  { toolChoice: _toolChoice, ...request }: RequestOptions,
  toolkit: { readonly declarations: readonly ToolDeclaration[] },
  { unsupported }: Pick<Model, 'unsupported'>,
): RequestOptions => {
  if (toolkit.declarations.length === 0 || unsupported?.includes('toolChoice') === true) {
    return request;
  }
  return { ...withTools(request, toolkit), toolChoice: 'none' };
};
