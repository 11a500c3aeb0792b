import type { Tool } from 'millrace';

/**
 * Marks a tool for the vendor's own search: Anthropic and OpenAI's Responses API get it with `defer_loading`, and show it to the model once
 * their search has found it. Others get it as any tool. Add the vendor's search to the model, too, with `builtInTools`.
 */
export const deferLoading = (tool: Tool): Tool => {
  const { vendorOptions = {} } = tool;
  const deferred = (vendor: string) => ({
    [vendor]: { ...vendorOptions[vendor], defer_loading: true },
  });
  return Object.freeze({
    ...tool,
    vendorOptions: { ...vendorOptions, ...deferred('Anthropic'), ...deferred('OpenAI') },
  });
};
