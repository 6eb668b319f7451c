import { listPage } from '../list-page.tsx'
import { AUDIT_LIST } from './audit-list.tsx'

export const metadata = { title: AUDIT_LIST.title }

export default listPage(AUDIT_LIST)
