import { listPage } from '../list-page.tsx'
import { BATCH_LIST } from './batch-list.tsx'

export const metadata = { title: BATCH_LIST.title }

export default listPage(BATCH_LIST)
