import type { Model, ModelReport, RequestOptions } from './model.js';

/** The warning that an option was left out. */
export const dropWarning = ({ name }: Pick<Model, 'name'>, option: string): ModelReport => ({
  type: 'warning',
  message: `The model '${name}' cannot take '${option}': it was left out of the request.`,
});

/** Splits the options of a request into those that a model takes and the names of those that it cannot. */
export const supportedOptions = (
  { unsupported = [] }: Pick<Model, 'unsupported'>,
  options: RequestOptions,
): { readonly options: RequestOptions; readonly dropped: readonly string[] } => {
  const dropped = unsupported.filter((name) => options[name] !== undefined);
  if (dropped.length === 0) return { options, dropped };
  const kept = Object.entries(options).filter(([name]) => !dropped.some((it) => it === name));
  return { options: Object.fromEntries(kept), dropped };
};
