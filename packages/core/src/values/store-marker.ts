/**
 * The name of the file with which a store marks its directory. Tools that access files refuse a directory with such a file, and
 * all below it: it holds conversations of all users.
 */
export const storeMarker = '.millrace-store';
