"""Who runs when, and on which KV blocks. Plain integers and lists: knows no tensor and no clock."""
