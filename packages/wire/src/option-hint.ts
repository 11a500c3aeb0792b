/** Explains an option of a model that has another name, or another place, in Millrace than elsewhere. */
export const optionHint = (name: string, known: readonly string[]): string | undefined => {
  const plain = plainOf(name);
  const isOfAgent = /^(temp|tool|stop|system|instr)|tokens$/u.test(plain);
  const meant = known.find((it) => {
    const other = plainOf(it);
    return other === plain || (!isOfAgent && (other.includes(plain) || plain.includes(other)));
  });
  if (meant) return `Did you mean '${meant}'?`;
  return isOfAgent
    ? 'Agents have it: createAgent({ model, instructions, tools, request: { temperature, maxTokens } }).'
    : undefined;
};

/** One spelling for `baseURL`, `base_url` and `baseURL`, and for `maxRetries` and `retry`. */
const plainOf = (name: string): string =>
  name.replaceAll(/[-_]/gu, '').toLowerCase().replace('retries', 'retry');
