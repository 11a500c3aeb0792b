import type { ToolDeclaration } from 'millrace';
import type { JsonRecord } from '@millrace/wire';

/** Options that both APIs have under the same name. */
export interface SharedExtras {
  readonly serviceTier?: string | undefined;
  readonly parallelToolCalls?: boolean | undefined;
}

/** Vendors reject `parallel_tool_calls` in a request without tools. */
export const sharedFields = (
  { serviceTier, parallelToolCalls }: SharedExtras,
  tools: readonly ToolDeclaration[] = [],
): JsonRecord => ({
  ...(serviceTier === undefined ? {} : { service_tier: serviceTier }),
  ...(parallelToolCalls === undefined || tools.length === 0
    ? {}
    : { parallel_tool_calls: parallelToolCalls }),
});
