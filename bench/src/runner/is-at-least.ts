/** Compares versions such as `20.19.0`; parts that are not said are 0. */
export const isAtLeast = (version: string, wanted: string): boolean => {
  const [is, least] = [partsOf(version), partsOf(wanted)];
  const place = least.findIndex((part, index) => part !== (is[index] ?? 0));
  return place === -1 || (is[place] ?? 0) > (least[place] ?? 0);
};

const partsOf = (version: string): readonly number[] => version.split('.').map(Number);
