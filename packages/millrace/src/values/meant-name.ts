/** Namespaces that chat templates put before the name of a tool. */
const namespace = /^(?:functions?|tools?|default_api|api)[.:/]/i;

/**
 * Returns the name that a model means by one that does not exist: without marks of a chat template (`<|channel|>commentary`),
 * a recipient (`to=`), a namespace (`functions.`), the number of the call (`:0`), brackets or quotes. Otherwise the same name.
 */
export const meantName = (name: string, exists: (name: string) => boolean): string => {
  if (exists(name) || name.length > 400) return name;
  const unmarked = name.replace(/^.*\bto=/s, '').replace(/^(?:<\|[^<>|]{0,40}\|>)+/, '');
  const first = unmarked.replace(/<\|.*$/s, '').trim();
  const plain = first.replace(/^["'`]+|["'`]+$/g, '').replace(/(?::\d{1,4}|\(\))$/, '');
  return [first, plain, plain.replace(namespace, '')].find(exists) ?? name;
};
