import { at } from '../mock/paths.js';

/** How many files a process may have open here. Node itself raises the limit of a process as far as it may. */
export const openFilesLimit = (): number => {
  const limits = at(process.report.getReport(), 'userLimits');
  const limit = at(at(limits, 'open_files'), 'soft');
  return limit === undefined || limit === 'unlimited' ? Infinity : Number(limit);
};
