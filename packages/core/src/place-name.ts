/** The part of the ids of the calls that a tool makes that stands for its use. Ids of tool uses are the model's: one must not read like the position of a step. */
export const placeName = (toolUseId: string): string =>
  /^[^\d/+][^/+]*$/.test(toolUseId)
    ? toolUseId
    : `use+${toolUseId.replace(/[^\w.-]/g, (unit) => `%${unit.charCodeAt(0).toString(16)}`)}`;
